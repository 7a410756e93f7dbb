import { describe, expect, it } from "@effect/vitest"
import { Effect, FastCheck, Schema } from "effect"
import { Stripe } from "stripe"
import { parseForm } from "../../src/emulator/api/Form.ts"
import { decodeParams, inRange, metadata, optional, patchMetadata, text } from "../../src/emulator/api/Params.ts"

const read = (encoded: string) =>
  Effect.runSync(Effect.map(parseForm(encoded), (input) => JSON.parse(JSON.stringify(input))))

const encode = async (params: object): Promise<string> => {
  const sent: Array<string> = []
  const stripe = new Stripe("sk_test_x", {
    telemetry: false,
    maxNetworkRetries: 0,
    httpClient: Stripe.createFetchHttpClient(async (_: unknown, init?: { body?: unknown }) => {
      sent.push(String(init?.body))
      return new Response("{}")
    })
  })
  await stripe.rawRequest("POST", "/v1/products", params)
  return sent[0] ?? ""
}

const key = FastCheck.string({ unit: "grapheme", minLength: 1, maxLength: 30 }).filter(
  (name) => !/[[\]]/.test(name) && name !== "__proto__"
)
const value = FastCheck.string({ unit: "grapheme", maxLength: 50 })

describe("a form", () => {
  it("gives back the metadata that the SDK sent, whatever the keys and values", async () => {
    await FastCheck.assert(
      FastCheck.asyncProperty(FastCheck.dictionary(key, value, { minKeys: 1, maxKeys: 10 }), async (given) => {
        const input = Effect.runSync(parseForm(await encode({ metadata: given })))
        const decoded = Effect.runSync(decodeParams(Schema.Struct({ metadata }), input))
        expect(decoded.metadata).toEqual({ ...given })
      }),
      { numRuns: 200 }
    )
  })

  it("reads nested lists in every notation", () => {
    const expected = {
      line_items: [
        { price: "a", quantity: "1" },
        { price: "b", quantity: "2" }
      ]
    }
    expect(
      read("line_items[0][price]=a&line_items[0][quantity]=1&line_items[1][price]=b&line_items[1][quantity]=2")
    ).toEqual(expected)
    expect(
      read(
        "line_items%5B0%5D%5Bprice%5D=a&line_items%5B0%5D%5Bquantity%5D=1&line_items%5B1%5D%5Bprice%5D=b&line_items%5B1%5D%5Bquantity%5D=2"
      )
    ).toEqual(expected)
    expect(read("expand[]=a&expand[]=b")).toEqual({ expand: ["a", "b"] })
    expect(read(Array.from({ length: 100 }, (_, index) => `a[${index}]=${index}`).join("&")).a).toHaveLength(100)
    expect(read("")).toEqual({})
    expect(read("name=a+b%26c%C3%A9")).toEqual({ name: "a b&cé" })
  })

  it("refuses names that it cannot keep, and more than it can hold", () => {
    const refused = [
      "a[b=1",
      "a]=1",
      "=1",
      "[a]=1",
      "a[b]c=1",
      "__proto__=1",
      "a[__proto__]=1",
      "a%5B__proto__%5D=1",
      "%ZZ=1",
      "a[b][c][d][e][f][g][h][i][j][k]=1",
      "a[5000]=1"
    ]
    for (const encoded of [...refused, Array.from({ length: 5_001 }, (_, index) => `p${index}=1`).join("&")]) {
      const error = Effect.runSync(Effect.flip(parseForm(encoded)))
      expect([encoded.slice(0, 40), error.status]).toEqual([encoded.slice(0, 40), 400])
    }
  })
})

describe("parameters", () => {
  it("patch metadata key by key", () => {
    FastCheck.assert(
      FastCheck.property(
        FastCheck.dictionary(
          key,
          value.filter((one) => one !== "")
        ),
        FastCheck.dictionary(key, value),
        (before, patch) => {
          const after = patchMetadata(before, patch)
          for (const [name, one] of Object.entries(patch))
            expect(Object.hasOwn(after, name) ? after[name] : "").toBe(one)
          for (const [name, one] of Object.entries(before))
            if (!Object.hasOwn(patch, name)) expect(after[name]).toBe(one)
          expect(patchMetadata(before, "")).toEqual({})
          expect(patchMetadata(before, undefined)).toEqual({ ...before })
        }
      )
    )
  })

  it("hold a moment against a range as its bounds say", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.nat(100), FastCheck.nat(100), (moment, bound) => {
        expect(inRange(moment, { gt: bound })).toBe(moment > bound)
        expect(inRange(moment, { gte: bound })).toBe(moment >= bound)
        expect(inRange(moment, { lt: bound })).toBe(moment < bound)
        expect(inRange(moment, { lte: bound })).toBe(moment <= bound)
        expect(inRange(moment, bound)).toBe(moment === bound)
        expect(inRange(moment, undefined)).toBe(true)
      })
    )
  })

  it("name what is wrong in the provider's notation, unknown ones first", () => {
    const schema = Schema.Struct({ a: Schema.Struct({ b: text(3) }), c: optional(text()) })
    const refused = (input: Record<string, unknown>) => {
      const { code, param } = Effect.runSync(Effect.flip(decodeParams(schema, input)))
      return [code, param]
    }
    expect(refused({})).toEqual(["parameter_missing", "a"])
    expect(refused({ a: {} })).toEqual(["parameter_missing", "a[b]"])
    expect(refused({ a: { b: "x", d: "y" } })).toEqual(["parameter_unknown", "a[d]"])
    expect(refused({ a: { b: "four" } })).toEqual([undefined, "a[b]"])
    expect(refused({ a: { b: "x" }, c: "" })).toEqual(["parameter_invalid_empty", "c"])
    expect(refused({ a: "x" })).toEqual([undefined, "a"])
    expect(refused({ e: "x" })).toEqual(["parameter_unknown", "e"])
  })
})
