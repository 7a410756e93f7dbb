import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, FastCheck } from "effect"
import { Envelope, encodeEnvelope } from "../../src/events/Envelope.ts"
import {
  isKnownWebhookEvent,
  standardWebhooksSecret,
  verifyWebhook,
  WebhookVerificationError
} from "../../src/webhooks/index.ts"
import { body, envelope, later, organizationId, previousSecret, secret, sign, timestamp } from "./Deliveries.ts"

const header = sign(body)
const valid = { body, header, secret, now: later() }

/** The reason for which a delivery is refused, or `accepted`. */
const outcome = (change: Partial<Parameters<typeof verifyWebhook>[0]>): string => {
  try {
    verifyWebhook({ ...valid, ...change })
    return "accepted"
  } catch (error) {
    if (error instanceof WebhookVerificationError) return error.reason
    throw error
  }
}

/** The outcome of a body that the service did sign. */
const signed = (value: unknown, change: Partial<Parameters<typeof verifyWebhook>[0]> = {}): string => {
  const text = typeof value === "string" ? value : JSON.stringify(value)
  return outcome({ body: text, header: sign(text), ...change })
}

describe("verifyWebhook", () => {
  it("answers the event of a genuine delivery, of text, bytes, a part of a buffer or an ArrayBuffer", () => {
    const bytes = new TextEncoder().encode(body)
    for (const form of [body, bytes, Buffer.from(`xx${body}yy`).subarray(2, 2 + bytes.length), bytes.buffer]) {
      expect(verifyWebhook({ ...valid, body: form })).toEqual(envelope)
    }
  })

  it("answers every event that the service can send, under either secret of a rotation", () => {
    FastCheck.assert(
      FastCheck.property(Arbitrary.make(Envelope), (event) => {
        const text = encodeEnvelope(event)
        const delivery = { body: text, header: sign(text, secret, previousSecret), now: later() }
        for (const key of [secret, previousSecret, ["whsec_other", previousSecret], [secret, previousSecret]]) {
          const read = verifyWebhook({ ...delivery, secret: key })
          expect(read).toEqual(JSON.parse(text))
          expect(isKnownWebhookEvent(read)).toBe(true)
        }
      })
    )
  })

  it("reads an event of a type that it does not know", () => {
    const event = { ...envelope, type: "payment.disputed_again", data: { new_field: 1 } }
    const text = JSON.stringify(event)
    const read = verifyWebhook({ ...valid, body: text, header: sign(text) })
    expect(read).toEqual(event)
    expect(isKnownWebhookEvent(read)).toBe(false)
    for (const type of ["constructor", "toString"]) {
      const inherited = JSON.stringify({ ...event, type })
      expect(isKnownWebhookEvent(verifyWebhook({ ...valid, body: inherited, header: sign(inherited) }))).toBe(false)
    }
  })

  it("reads an event with fields that it does not know", () => {
    expect(signed({ ...envelope, added: true, data: { ...envelope.data, added: 1 } })).toBe("accepted")
  })
})

describe("the signature", () => {
  it("holds for the exact bytes: no single one can be altered, added or taken away", () => {
    const bytes = Buffer.from(body)
    for (let index = 0; index < bytes.length; index++) {
      const altered = Buffer.from(bytes)
      altered[index] = (bytes[index] ?? 0) ^ (1 << (index % 8))
      expect(outcome({ body: altered })).toBe("signature_mismatch")
      const shortened = Buffer.concat([bytes.subarray(0, index), bytes.subarray(index + 1)])
      expect(outcome({ body: shortened })).toBe("signature_mismatch")
    }
    expect(outcome({ body: `${body}\n` })).toBe("signature_mismatch")
    expect(outcome({ body: "" })).toBe("signature_mismatch")
    expect(outcome({ body: JSON.stringify(JSON.parse(body), null, 2) })).toBe("signature_mismatch")
  })

  it("holds for the exact header: no single character can be altered", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.nat(header.length - 1), FastCheck.fullUnicode(), (index, character) => {
        FastCheck.pre(character !== header[index])
        const altered = header.slice(0, index) + character + header.slice(index + 1)
        expect(["malformed_header", "signature_mismatch"]).toContain(outcome({ header: altered }))
      }),
      { numRuns: 1000 }
    )
  })

  it("does not hold under another secret, however near", () => {
    for (const other of [previousSecret, secret.slice(6), `${secret}x`, secret.toLowerCase(), secret.slice(0, -1)]) {
      expect(outcome({ secret: other })).toBe("signature_mismatch")
    }
    FastCheck.assert(
      FastCheck.property(FastCheck.stringMatching(/^[\x21\x23-\x26\x28-\x5f\x61-\x7e]+$/), (other) => {
        FastCheck.pre(other !== secret)
        expect(outcome({ secret: other })).toBe("signature_mismatch")
      })
    )
  })

  it("is found wherever it stands among any number of v1 values and other schemes", () => {
    const genuine = header.slice(header.indexOf("v1="))
    const noise = FastCheck.oneof(
      FastCheck.stringMatching(/^[0-9a-f]{64}$/).map((hex) => `v1=${hex}`),
      FastCheck.constantFrom("v1=", "v1=zz", "v1", "v0=00", "v2=abc", "", "=", "nonsense", `v1=${"é".repeat(32)}`)
    )
    FastCheck.assert(
      FastCheck.property(FastCheck.array(noise), FastCheck.array(noise), (before, after) => {
        const parts = [...before, genuine, ...after]
        expect(outcome({ header: [`t=${timestamp}`, ...parts].join(",") })).toBe("accepted")
        expect(outcome({ header: [...parts, `t=${timestamp}`].join(",") })).toBe("accepted")
        expect(outcome({ header: [`t=${timestamp}`, "v1=0", ...before, ...after].join(",") })).toBe(
          "signature_mismatch"
        )
      })
    )
  })

  it("is found at the end of a huge header, in time that grows with its length only", () => {
    const many = Array.from({ length: 20_000 }, (_, index) => `v1=${index.toString(16).padStart(64, "0")}`).join(",")
    expect(outcome({ header: `t=${timestamp},${many},${header.slice(header.indexOf("v1="))}` })).toBe("accepted")
    expect(outcome({ header: `t=${timestamp},${many}` })).toBe("signature_mismatch")
    expect(outcome({ header: `t=${timestamp},v1=${"0".repeat(5_000_000)}` })).toBe("signature_mismatch")
    expect(outcome({ header: ",".repeat(1_000_000) })).toBe("malformed_header")
  })

  it("is checked before the time, and both before the body is parsed", () => {
    const broken = "{not json"
    expect(outcome({ body: broken, header: sign(body), now: later(9999) })).toBe("signature_mismatch")
    expect(outcome({ body: broken, header: sign(broken), now: later(9999) })).toBe("timestamp_out_of_tolerance")
    expect(outcome({ body: broken, header: sign(broken) })).toBe("malformed_body")
  })
})

describe("the header", () => {
  it.each([null, undefined, ""])("is missed where it is %j", (missing) => {
    expect(outcome({ header: missing })).toBe("missing_header")
  })

  it.each([
    "t=1760000000",
    `v1=${"0".repeat(64)}`,
    `t=,v1=${"0".repeat(64)}`,
    `t=abc,v1=${"0".repeat(64)}`,
    `t=-1,v1=${"0".repeat(64)}`,
    `t=1.5,v1=${"0".repeat(64)}`,
    `t=1e9,v1=${"0".repeat(64)}`,
    `t=${"9".repeat(400)},v1=${"0".repeat(64)}`,
    "t=1760000000,v0=00",
    "t=1760000000;v1=00",
    " ",
    "Bearer abc"
  ])("is malformed as %s", (bad) => {
    expect(outcome({ header: bad })).toBe("malformed_header")
  })

  it("is malformed with a second timestamp, even beside a genuine signature", () => {
    expect(outcome({ header: `${header},t=${timestamp}` })).toBe("malformed_header")
    expect(outcome({ header: `t=${timestamp + 9999},${header}` })).toBe("malformed_header")
  })

  it("gives a reason for any text, and never accepts it", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.oneof(FastCheck.fullUnicodeString(), FastCheck.string()), (text) => {
        expect(["missing_header", "malformed_header", "signature_mismatch"]).toContain(outcome({ header: text }))
      })
    )
  })
})

describe("the time of signing", () => {
  it("may be up to five minutes off, in either direction", () => {
    for (const offset of [0, 1, 299, 300, -1, -299, -300]) {
      expect([offset, outcome({ now: later(offset) })]).toEqual([offset, "accepted"])
    }
    for (const offset of [301, -301, 86_400, -86_400]) {
      expect([offset, outcome({ now: later(offset) })]).toEqual([offset, "timestamp_out_of_tolerance"])
    }
  })

  it("may be off by what the consumer allows", () => {
    expect(outcome({ now: later(60), toleranceSeconds: 60 })).toBe("accepted")
    expect(outcome({ now: later(61), toleranceSeconds: 60 })).toBe("timestamp_out_of_tolerance")
    expect(outcome({ now: later(-61), toleranceSeconds: 60 })).toBe("timestamp_out_of_tolerance")
    expect(outcome({ toleranceSeconds: 0 })).toBe("accepted")
  })

  it("is refused where tolerance or clock are no numbers", () => {
    expect(outcome({ toleranceSeconds: Number.NaN })).toBe("timestamp_out_of_tolerance")
    expect(outcome({ toleranceSeconds: -1 })).toBe("timestamp_out_of_tolerance")
    expect(outcome({ now: new Date(Number.NaN) })).toBe("timestamp_out_of_tolerance")
  })

  it("is compared with the system's clock where no time is given", () => {
    expect(() => verifyWebhook({ body, header, secret })).toThrow(WebhookVerificationError)
  })
})

describe("the body", () => {
  it.each([
    ["no JSON", "{"],
    ["an empty text", ""],
    ["a list", []],
    ["null", null],
    ["a number", 1],
    ["no version", { ...envelope, version: undefined }],
    ["a version that is text", { ...envelope, version: "1" }],
    ["no id", { ...envelope, id: undefined }],
    ["no type", { ...envelope, type: undefined }],
    ["a type that is a number", { ...envelope, type: 1 }],
    ["no created_at", { ...envelope, created_at: null }],
    ["a livemode that is text", { ...envelope, livemode: "false" }],
    ["no organization", { ...envelope, organization_id: undefined }],
    ["no source", { ...envelope, source: null }],
    ["a source without event id", { ...envelope, source: { provider: "stripe" } }],
    ["no data", { ...envelope, data: undefined }],
    ["data that is a list", { ...envelope, data: [] }],
    ["test: false", { ...envelope, test: false }]
  ])("is malformed with %s", (_, value) => {
    expect(signed(value)).toBe("malformed_body")
  })

  it("is malformed where it is no UTF-8", () => {
    // Inside a text value, so that all but its encoding is well-formed
    const [before = "", after = ""] = body.split("pi_1")
    const withId = (id: Uint8Array) => Buffer.concat([Buffer.from(before), id, Buffer.from(after)])
    const wellFormed = withId(Buffer.from("pi_é"))
    expect(outcome({ body: wellFormed, header: sign(wellFormed) })).toBe("accepted")
    const bytes = withId(Buffer.from([0x70, 0x69, 0xff, 0xfe]))
    expect(outcome({ body: bytes, header: sign(bytes) })).toBe("malformed_body")
  })

  it("is refused in a version that is not known, whatever else it holds", () => {
    for (const version of [0, 2, 1.1]) {
      expect(signed({ ...envelope, version })).toBe("unsupported_version")
      expect(signed({ version })).toBe("unsupported_version")
    }
  })

  it("is refused for another organization than the expected one", () => {
    expect(outcome({ organizationId })).toBe("accepted")
    expect(outcome({ organizationId: organizationId.toUpperCase() })).toBe("accepted")
    expect(outcome({ organizationId: "0199c0de-0000-7000-8000-000000000002" })).toBe("wrong_organization")
    expect(outcome({ organizationId: "" })).toBe("wrong_organization")
  })

  it("is refused for the other environment than the expected one", () => {
    expect(outcome({ livemode: false })).toBe("accepted")
    expect(outcome({ livemode: true })).toBe("wrong_environment")
    expect(signed({ ...envelope, livemode: true }, { livemode: true })).toBe("accepted")
    expect(signed({ ...envelope, livemode: true }, { livemode: false })).toBe("wrong_environment")
  })
})

describe("a wrong call", () => {
  it("is a TypeError where a secret is missing or empty: an empty key is one that anybody can sign with", () => {
    for (const bad of ["", [], [secret, ""]]) expect(() => verifyWebhook({ ...valid, secret: bad })).toThrow(TypeError)
  })

  it.each<readonly [string, string, RegExp]>([
    ["a line break at its end", `${secret}\n`, /line break/],
    ["a line break of Windows", `${secret}\r\n`, /line break/],
    ["a space before it", ` ${secret}`, /space/],
    ["a tab in it", secret.replace("_", "_\t"), /space/],
    ["double quotes around it", `"${secret}"`, /quotes/],
    ["single quotes around it", `'${secret}'`, /quotes/],
    ["a byte order mark before it", `\ufeff${secret}`, /space|character/],
    ["a control character in it", `${secret}\u0000`, /character/],
    ["the form of Standard Webhooks", standardWebhooksSecret(secret), /signingSecret/]
  ])("is a TypeError where a secret has %s, whichever it is, and the message has nothing of it", (_, bad, fault) => {
    for (const given of [bad, [secret, bad]]) {
      const call = () => verifyWebhook({ ...valid, secret: given })
      expect(call).toThrow(TypeError)
      expect(call).toThrow(fault)
      expect(call).not.toThrow(secret.slice(6, 12))
    }
  })

  it("is a TypeError where the body was parsed already", () => {
    const parsed: string = JSON.parse(body)
    expect(() => verifyWebhook({ ...valid, body: parsed })).toThrow(TypeError)
  })
})

describe("WebhookVerificationError", () => {
  it("says why, without any part of the request, and keeps the cause", () => {
    try {
      verifyWebhook({ ...valid, body: "{secret-part", header: sign("{secret-part") })
      expect.unreachable()
    } catch (error) {
      expect(error).toBeInstanceOf(WebhookVerificationError)
      expect(error).toMatchObject({ name: "WebhookVerificationError", reason: "malformed_body" })
      expect(String(error)).not.toContain("secret-part")
      expect(error instanceof Error && error.cause).toBeInstanceOf(SyntaxError)
    }
  })
})
