import { expect } from "@effect/vitest"
import { Cause, Effect, Exit, FastCheck as fc, Option } from "effect"
import { Inbound } from "../../src/inbound/Inbound.ts"
import { SignatureInvalid } from "../../src/platform/errors/Errors.ts"
import { charge, checkoutSession, paymentIntent, subscription } from "../events/ProviderEvents.ts"
import { casesOf } from "../harness/Corpus.ts"
import { processorTime, takesLess } from "../harness/ProcessorTime.ts"
import { inDatabase, onSharedService, sendRequest, serviceOf } from "../harness/TestService.ts"
import {
  makeSubscriber,
  makeTenant,
  newEventId,
  notification,
  outcomeOf,
  signature,
  thinNotification
} from "./Notifications.ts"

interface Arrival {
  readonly entry: "snapshot" | "thin"
  readonly kind: string
  readonly id: string
  readonly body: Buffer
  readonly header: string | undefined
  /** Whether the provider signed these bytes, not long ago. */
  readonly isGenuine: boolean
}

const paths = { snapshot: "/webhooks/provider", thin: "/webhooks/provider/thin" } as const

/** What is drawn for an arrival; `position` is a share of a length. */
interface Draw {
  readonly entry: Arrival["entry"]
  readonly position: number
  readonly seconds: number
  readonly noise: string
}

type Make = (genuine: string, draw: Draw) => Pick<Arrival, "body" | "header">

const bytesOf = (text: string): Buffer => Buffer.from(text, "utf8")
const upTo = (length: number, { position }: Draw): number => Math.min(length - 1, Math.floor(position * length))

/** What nobody may take: none of it is what the provider signed, or not lately. */
const refused: Readonly<Record<string, Make>> = {
  "a truncated body": (text, draw) => {
    const bytes = bytesOf(text)
    return { body: bytes.subarray(0, upTo(bytes.length, draw)), header: signature(text) }
  },
  "a truncated header": (text, draw) => {
    const header = signature(text)
    return { body: bytesOf(text), header: header.slice(0, upTo(header.length, draw)) }
  },
  "a longer body": (text, { noise }) => ({ body: bytesOf(`${text}${noise} `), header: signature(text) }),
  "a body in another encoding": (text) => ({ body: Buffer.from(text, "utf16le"), header: signature(text) }),
  "a body with a byte order mark": (text) => ({ body: bytesOf(`\uFEFF${text}`), header: signature(text) }),
  "bytes that only read like what was signed": (text) => {
    const signed = text.replace("{", '{"\uFFFD":1,')
    const bytes = bytesOf(signed)
    const at = bytes.indexOf("\uFFFD")
    return {
      body: Buffer.concat([bytes.subarray(0, at), Buffer.of(0xff), bytes.subarray(at + 3)]),
      header: signature(signed)
    }
  },
  "a flipped bit": (text, draw) => {
    const body = bytesOf(text)
    const at = upTo(body.length, draw)
    body.writeUInt8(body.readUInt8(at) ^ 1, at)
    return { body, header: signature(text) }
  },
  "a replay after five minutes": (text, { seconds }) => ({
    body: bytesOf(text),
    header: signature(text, { secondsFromNow: -301 - seconds })
  }),
  // Far enough ahead that no slow machine lets it come near
  "one from the future": (text, { seconds }) => ({
    body: bytesOf(text),
    header: signature(text, { secondsFromNow: 3600 + seconds })
  }),
  "another secret": (text, { noise }) => ({
    body: bytesOf(text),
    header: signature(text, { secret: `whsec_other${noise}` })
  }),
  "a signature with a new time": (text) => ({
    body: bytesOf(text),
    header: signature(text, { secondsFromNow: -400 }).replace(/^t=\d+/, `t=${Math.floor(Date.now() / 1000)}`)
  }),
  "a header of noise": (text, { noise }) => ({
    body: bytesOf(text),
    header: noise.replaceAll(/[^\u0021-\u007e]/g, "")
  }),
  "a huge header": (text, { position }) => ({
    body: bytesOf(text),
    header: `t=${Math.floor(Date.now() / 1000)}${",v1=00".repeat(Math.floor(position * 500))}`
  }),
  "no header": (text) => ({ body: bytesOf(text), header: undefined }),
  "an empty header": (text) => ({ body: bytesOf(text), header: "" }),
  "a header without a time": (text) => ({ body: bytesOf(text), header: signature(text).replace(/t=\d+,/, "") }),
  "a header without a signature": (text) => ({ body: bytesOf(text), header: signature(text).replace(/,v1=.*/, "") }),
  "another scheme": (text) => ({ body: bytesOf(text), header: signature(text).replace("v1=", "v0=") }),
  "two times, the signed one first": (text) => ({ body: bytesOf(text), header: `${signature(text)},t=1` }),
  "two times, the signed one last": (text) => ({ body: bytesOf(text), header: `t=1,${signature(text)}` }),
  "the same time twice": (text) => ({
    body: bytesOf(text),
    header: `${signature(text).split(",")[0]},${signature(text)}`
  }),
  "reformatted JSON": (text) => ({ body: bytesOf(JSON.stringify(JSON.parse(text), null, 1)), header: signature(text) })
}

const genuineBody = (entry: Arrival["entry"], account: string, id: string): string =>
  entry === "snapshot" ? notification(account, { id }) : thinNotification(account, { id, type: "v1.charge.updated" })

const draws = fc.record<Draw>({
  entry: fc.constantFrom("snapshot", "thin"),
  position: fc.double({ min: 0, max: 0.999, noNaN: true }),
  seconds: fc.integer({ min: 0, max: 10_000_000 }),
  noise: fc.string({ maxLength: 40 })
})

const kinds = Object.entries(refused)

/** So many arrivals of every kind that is refused. */
const refusedArrivals = (account: string, count: number): ReadonlyArray<Arrival> =>
  fc.sample(draws, count).map((draw, n) => {
    const [kind, make] = kinds[n % kinds.length] ?? ["", () => ({ body: Buffer.alloc(0), header: undefined })]
    const id = newEventId()
    return { ...make(genuineBody(draw.entry, account, id), draw), entry: draw.entry, kind, id, isGenuine: false }
  })

/** Genuine ones: of this account, and of one that nobody knows; and each of them at once again. */
const genuineArrivals = (account: string, count: number): ReadonlyArray<Arrival> =>
  fc.sample(draws, count).flatMap(({ entry }, n) => {
    const id = newEventId()
    const text = genuineBody(entry, n % 3 === 0 ? account : "acct_nobodys", id)
    const arrival = { entry, kind: "genuine", id, body: bytesOf(text), header: signature(text), isGenuine: true }
    return n % 2 === 0 ? [arrival, { ...arrival, kind: "a replay at once" }] : [arrival]
  })

const receiptsOf = (arrivals: ReadonlyArray<Arrival>) =>
  Effect.map(
    inDatabase<{ id: string; outcome: string }>`
      SELECT provider_event_id AS id, outcome FROM payments.receipts
      WHERE provider_event_id = ANY (${arrivals.map(({ id }) => id)})`,
    (rows) => rows
  )

/** A receipt of each that is genuine, one, and of nothing else. */
const expectReceiptsOfGenuine = (arrivals: ReadonlyArray<Arrival>) =>
  Effect.map(receiptsOf(arrivals), (receipts) => {
    const genuine = new Set(arrivals.filter(({ isGenuine }) => isGenuine).map(({ id }) => id))
    expect(receipts.map(({ id }) => id).sort()).toEqual([...genuine].sort())
    return new Set(receipts.map(({ outcome }) => outcome))
  })

onSharedService("bad notifications", (it) => {
  it.effect("are refused without a receipt if they are not signed; what is genuine leaves one", function* () {
    const inbound = yield* serviceOf(Inbound)
    const { tenant } = yield* makeSubscriber()
    const arrivals = [...refusedArrivals(tenant.accountId, casesOf(2000)), ...genuineArrivals(tenant.accountId, 60)]
    yield* Effect.forEach(
      arrivals,
      ({ body, entry, header, isGenuine, kind }) =>
        Effect.map(
          Effect.exit(entry === "snapshot" ? inbound.receive(body, header) : inbound.receiveThin(body, header)),
          (exit) => {
            if (Exit.isSuccess(exit)) return expect([kind, isGenuine]).toEqual([kind, true])
            expect([kind, isGenuine]).toEqual([kind, false])
            const failure = Option.getOrUndefined(Cause.failureOption(exit.cause))
            expect(failure, Cause.pretty(exit.cause)).toBeInstanceOf(SignatureInvalid)
          }
        ),
      { concurrency: 8, discard: true }
    )
    expect([...(yield* expectReceiptsOfGenuine(arrivals))].sort()).toEqual(["delivered", "ignored", "unlinked"])
  })

  it.effect("are answered 400 over HTTP, 413 where they are too large, and never by a 5xx", function* () {
    const tenant = yield* makeTenant
    const send = ({ body, entry, header }: Arrival, headers: Readonly<Record<string, string>> = {}) =>
      sendRequest("POST", paths[entry], {
        raw: body,
        headers: { ...(header === undefined ? {} : { "stripe-signature": header }), ...headers }
      })
    const arrivals = [...refusedArrivals(tenant.accountId, casesOf(1000)), ...genuineArrivals(tenant.accountId, 40)]
    yield* Effect.forEach(
      arrivals,
      (arrival) =>
        Effect.map(send(arrival), ({ status, text }) => {
          expect([arrival.kind, status], text).toEqual([arrival.kind, arrival.isGenuine ? 200 : 400])
        }),
      { concurrency: 16, discard: true }
    )
    yield* expectReceiptsOfGenuine(arrivals)

    for (const entry of ["snapshot", "thin"] as const) {
      const id = newEventId()
      const huge = genuineBody(entry, tenant.accountId, id).replace(/\}$/, `,"x":"${"a".repeat(1024 * 1024)}"}`)
      const tooLarge = { entry, kind: "huge", id, body: bytesOf(huge), header: signature(huge), isGenuine: false }
      expect((yield* send(tooLarge)).status).toBe(413)
      // What a header says of the bytes changes nothing about which of them are signed
      const text = genuineBody(entry, tenant.accountId, id)
      const forged = { ...tooLarge, body: bytesOf(text), header: signature(`${text} `) }
      for (const headers of [
        { "content-encoding": "gzip" },
        { "content-type": "text/plain; charset=utf-16" },
        { "content-type": "multipart/form-data" },
        { "content-type": "" }
      ]) {
        expect((yield* send(forged, headers)).status).toBeLessThan(500)
      }
      yield* expectReceiptsOfGenuine([tooLarge])
    }
  })

  const deep = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`
  const depths = [5_000, 200_000, 520_000] as const

  /** Signed bodies that are no event, and so leave nothing. */
  const noEvents: Readonly<Record<string, string>> = {
    ...Object.fromEntries(depths.map((levels) => [`${levels} lists in each other`, deep(levels)])),
    ...Object.fromEntries(depths.map((levels) => [`${levels} lists that don't end`, "[".repeat(levels)])),
    "objects in each other": `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`,
    "a list of many": `[${"0,".repeat(500_000)}0]`,
    "a text as large as may be": JSON.stringify("a".repeat(1_000_000)),
    "a number beyond all": "1e400",
    "an object of nothing but a prototype": '{"__proto__":{"id":"evt_1","type":"charge.refunded","livemode":false}}',
    "NUL alone": JSON.stringify("\u0000")
  }

  /** Fields of an event that are not what they should be: `field` and what stands in the body for it. */
  const badFields: ReadonlyArray<readonly [what: string, field: string, json: string]> = [
    ...depths
      .slice(0, 2)
      .flatMap((levels) =>
        ["id", "type", "created", "livemode"].map((field) => [`${levels} lists`, field, deep(levels)] as const)
      ),
    ["a line break", "id", '"evt_1\\npayment.succeeded"'],
    ["no time", "created", '"yesterday"'],
    ["a time before all time", "created", '"-271821-04-20T00:00:00.000Z"'],
    ["a number beyond all", "created", "1e400"],
    ["a number below all", "created", "-1e400"],
    ["a fraction", "created", "1.5"],
    ["many", "created", `[${"0,".repeat(200_000)}0]`],
    ["NUL", "id", '"evt_\\u0000"'],
    ["half a character", "id", '"evt_\\ud800"'],
    ["NUL", "type", '"charge.refunded\\u0000"'],
    ["half a character", "type", '"\\ud800"']
  ]

  const sendSigned = (entry: Arrival["entry"], body: string) =>
    sendRequest("POST", paths[entry], { raw: body, headers: { "stripe-signature": signature(body) } })

  for (const entry of ["snapshot", "thin"] as const) {
    it.effect(`that are signed but no event are 400 at the entry of ${entry}s, and not stored`, function* () {
      const tenant = yield* makeTenant
      const count = inDatabase<{ count: number }>`SELECT count(*)::int AS count FROM payments.receipts`
      const before = yield* count
      const withField = (field: string, json: string) =>
        JSON.stringify({
          ...JSON.parse(genuineBody(entry, tenant.accountId, newEventId())),
          [field]: "PLACE"
        }).replace('"PLACE"', () => json)
      const bodies: ReadonlyArray<readonly [what: string, body: string]> = [
        ...Object.entries(noEvents),
        ...badFields.map(([what, field, json]) => [`${what} as ${field}`, withField(field, json)] as const),
        [
          "the other entry's event",
          genuineBody(entry === "thin" ? "snapshot" : "thin", tenant.accountId, newEventId())
        ],
        [
          "an object that is none",
          entry === "thin" ? withField("related_object", '{"id":1}') : withField("data", '{"object":[]}')
        ],
        ["nothing", ""],
        ["text after the JSON", `${genuineBody(entry, tenant.accountId, newEventId())}{}`],
        // The last of two of one name is what is read
        ["an id twice", withField("id", `"evt_good","id":7`)]
      ]
      for (const [what, body] of bodies) {
        const { json, status } = yield* sendSigned(entry, body)
        expect([what, status, json["code"]]).toEqual([what, 400, "signature_invalid"])
      }
      expect(yield* count).toEqual(before)
    })
  }

  it.effect("that hold what nobody asks for are taken by what they hold beside it", function* () {
    const { tenant } = yield* makeSubscriber()
    const extras: Readonly<Record<string, string>> = {
      depth: `"x":${deep(200_000)}`,
      width: `"x":[${"0,".repeat(300_000)}0]`,
      "many fields": Array.from({ length: 50_000 }, (_, n) => `"x${n}":0`).join(),
      "a prototype": '"__proto__":{"livemode":true,"amount_received":1},"constructor":{"prototype":null}',
      "a number beyond all": '"x":1e400',
      NUL: '"x\\u0000":"\\u0000"',
      "half a character": '"x\\ud800":"\\udfff"'
    }
    for (const [what, extra] of Object.entries(extras)) {
      const id = newEventId()
      const body = notification(tenant.accountId, { id }).replace('"amount": 1500', () => `"amount":1500,${extra}`)
      expect([what, (yield* sendSigned("snapshot", body)).status]).toEqual([what, 200])
      expect([what, yield* outcomeOf(id)]).toEqual([what, "delivered"])
      const thinId = newEventId()
      const thin = genuineBody("thin", tenant.accountId, thinId).replace("{", () => `{${extra},`)
      expect([what, (yield* sendSigned("thin", thin)).status]).toEqual([what, 200])
      expect([what, yield* outcomeOf(thinId)]).toEqual([what, "ignored"])
    }
  })

  it.effect("whose object holds what can't be are kept as malformed, or delivered with the rest", function* () {
    const { tenant } = yield* makeSubscriber([
      "payment.refunded",
      "payment.succeeded",
      "checkout.completed",
      "subscription.created"
    ])
    const cases: ReadonlyArray<readonly [outcome: string, type: string, object: object, field: string, json: string]> =
      [
        ["malformed", "charge.refunded", charge, "currency", deep(200_000)],
        ["malformed", "charge.refunded", charge, "payment_intent", `{"id":${deep(200_000)}}`],
        ["malformed", "charge.refunded", charge, "id", `[${"0,".repeat(300_000)}0]`],
        ["malformed", "charge.refunded", charge, "amount_refunded", "1e400"],
        ["malformed", "charge.refunded", charge, "amount_refunded", "9007199254740993"],
        ["delivered", "charge.refunded", charge, "payment_intent", '"pi_\\u0000\\ud800"'],
        ["delivered", "payment_intent.succeeded", paymentIntent, "metadata", `{"__proto__":"a","b":${deep(200_000)}}`],
        ["delivered", "checkout.session.completed", checkoutSession, "payment_link", '"plink_\\u0000\\ud800"'],
        ["delivered", "customer.subscription.created", subscription, "metadata", '{"a":"\\u0000","a":"\\ud800"}']
      ]
    for (const [outcome, type, object, field, json] of cases) {
      const id = newEventId()
      const body = notification(tenant.accountId, { id, type, object: { ...object, [field]: "PLACE" } }).replace(
        '"PLACE"',
        () => json
      )
      expect([field, (yield* sendSigned("snapshot", body)).status]).toEqual([field, 200])
      expect([type, field, yield* outcomeOf(id)]).toEqual([type, field, outcome])
      const [receipt] = yield* inDatabase<{ reason: string | null }>`
        SELECT reason FROM payments.receipts WHERE provider_event_id = ${id}`
      expect(receipt?.reason ?? null).toEqual(
        outcome === "malformed" ? expect.stringContaining(`event.data.object.${field}`) : null
      )
    }
  })

  it.effect("with tens of thousands of things to filter by take no longer than others", function* () {
    const { tenant } = yield* makeSubscriber(["subscription.created"], undefined, { prices: ["price_none"] })
    const send = (different: number) =>
      Effect.gen(function* () {
        const id = newEventId()
        const data = Array.from({ length: 18_000 }, (_, n) => ({
          price: { id: `price_${10_000 + (n % different)}`, product: `prod_${10_000 + (n % different)}` }
        }))
        const body = JSON.stringify(
          JSON.parse(
            notification(tenant.accountId, {
              id,
              type: "customer.subscription.created",
              object: { ...subscription, items: { object: "list", data, has_more: false } }
            })
          )
        )
        expect(body.length).toBeLessThan(1024 * 1024)
        expect((yield* sendSigned("snapshot", body)).status).toBe(200)
        expect(yield* outcomeOf(id)).toBe("no_subscriber")
      })
    // Each compared with each other would be seconds
    expect(yield* takesLess(5 * (yield* processorTime(send(1))), send(18_000))).toBe(true)
  })
})
