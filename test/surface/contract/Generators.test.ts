import { spawnSync } from "node:child_process"
import { describe, expect, it } from "@effect/vitest"
import { Predicate } from "effect"
import { operations } from "../../../src/surface/contract/Api.ts"
import { describedIn } from "../../../src/surface/contract/Document.ts"
import { openApiDocument } from "../../../src/surface/docs/OpenApiDocument.ts"

/** What the generators of clients read otherwise than people: types, patterns, names and examples. */

const document = openApiDocument()

interface Part {
  readonly place: string
  readonly schema: Readonly<Record<string, unknown>>
}

/** Every schema of the document, and whatever else is an object in it, with its place. */
const partsOf = (value: unknown, place = ""): ReadonlyArray<Part> => {
  if (Array.isArray(value)) return value.flatMap((part, index) => partsOf(part, `${place}/${index}`))
  if (!Predicate.isReadonlyRecord(value)) return []
  const inner = Object.entries(value).filter(([keyword]) => !["example", "enum", "const"].includes(keyword))
  return [{ place, schema: value }, ...inner.flatMap(([keyword, part]) => partsOf(part, `${place}/${keyword}`))]
}

const parts = partsOf(document)

const patterns = [
  ...new Set(parts.flatMap(({ schema: { pattern } }) => (Predicate.isString(pattern) ? [pattern] : [])))
]

/** The prefixes of the ids of each kind of object, by the names that fields and collections have. */
const prefixes: Readonly<Record<string, RegExp>> = {
  charge: /^ch_/,
  charges: /^ch_/,
  customers: /^cus_/,
  default_price: /^price_/,
  disputes: /^d[pu]_/,
  "payment-intents": /^pi_/,
  "payment-links": /^plink_/,
  payment_intent: /^pi_/,
  payout: /^po_/,
  payouts: /^po_/,
  price: /^price_/,
  prices: /^price_/,
  product: /^prod_/,
  products: /^prod_/,
  "promotion-codes": /^promo_/,
  refunds: /^re_/,
  sessions: /^cs_test_/,
  subscriptions: /^sub_/
}

const hasPydantic = spawnSync("python3", ["-c", "import pydantic_core"]).status === 0

describe("the OpenAPI document, as generators read it", () => {
  it("gives 64 bits to each whole number that may need them", () => {
    const integers = parts.filter(({ schema: { type } }) => [type].flat().includes("integer"))
    expect(integers.length).toBeGreaterThan(100)
    const short = integers.filter(({ schema: { format } }) => format !== "int64")
    expect(short.filter(({ schema: { maximum } }) => !(Number(maximum) < 2 ** 31))).toEqual([])
    for (const name of ["unit_amount", "amount_total", "created", "expires_at"]) {
      const named = integers.filter(({ place }) => place.endsWith(`/properties/${name}`))
      expect([named.length > 0, named.filter((part) => short.includes(part))], name).toEqual([true, []])
    }
  })

  it("has patterns that JavaScript's strict syntax takes, without lookaround", () => {
    expect(patterns.length).toBeGreaterThan(15)
    for (const pattern of patterns) {
      expect(() => new RegExp(pattern, "v"), pattern).not.toThrow()
      expect(pattern).not.toMatch(/\(\?<?[=!]|\\[pP]\{/)
    }
  })

  it.skipIf(!hasPydantic)("has patterns that Rust's syntax takes (skipped unless python3 has pydantic_core)", () => {
    const script = `import json, sys
from pydantic_core import SchemaValidator
for pattern in json.load(sys.stdin):
    SchemaValidator({"type": "str", "pattern": pattern})`
    const { status, stderr } = spawnSync("python3", ["-c", script], { input: JSON.stringify(patterns) })
    expect([status, String(stderr)]).toEqual([0, ""])
  })

  it("has for each id an example with the prefix of its kind", () => {
    const examplesOf = ({ example, examples }: Part["schema"]): ReadonlyArray<unknown> => [
      ...(example === undefined ? [] : [example]),
      ...(Array.isArray(examples) ? examples : [])
    ]
    const ofParameters = operations.flatMap((operation) => {
      const { parameters } = describedIn(document, operation)
      const [, collection] = /\/provider\/.*?([a-z-]+)\/:id/.exec(operation.path) ?? []
      return (Array.isArray(parameters) ? parameters : []).map(({ example, name, schema }) => ({
        name: name === "id" ? String(collection) : String(name),
        examples: [...examplesOf(schema), ...(example === undefined ? [] : [example])]
      }))
    })
    const ofFields = parts.flatMap(({ place, schema }) => {
      const [, name] = /\/schemas\/(?:Create|Update|FiltersInput).*\/properties\/(\w+)(?:\/items)?$/.exec(place) ?? []
      return name === undefined || schema["type"] === "array" ? [] : [{ name, examples: examplesOf(schema) }]
    })
    const ids = [...ofParameters, ...ofFields].flatMap(({ examples, name }) => {
      const prefix = prefixes[name]
      return prefix === undefined ? [] : [{ name, examples, prefix }]
    })
    expect(new Set(ids.map(({ name }) => name))).toEqual(new Set(Object.keys(prefixes)))
    for (const { examples, name, prefix } of ids) {
      expect(examples.length, name).toBeGreaterThan(0)
      for (const example of examples) expect(example, name).toMatch(prefix)
    }
  })

  it("has tags as people write them, each described, and each operation under one of them", () => {
    const tags = parts.flatMap(({ place, schema }) => (/^\/tags\/\d+$/.test(place) ? [schema] : []))
    const names = tags.map(({ name }) => String(name))
    for (const { description, name } of tags) {
      expect(name).toMatch(/^(?:[A-Z][a-z]+|API)(?: (?:[a-z]+|URLs))*$/)
      expect(description, String(name)).toMatch(/^[A-Z]/)
    }
    expect(names).toEqual(expect.arrayContaining(["Checkout sessions", "API keys", "Return URLs", "Webhooks"]))
    for (const operation of operations)
      expect(names).toEqual(expect.arrayContaining(Object(describedIn(document, operation)["tags"])))
  })

  it("has no component by a name that a generator gives to a part of an operation", () => {
    const components = parts.flatMap(({ place }) => /^\/components\/schemas\/([^/]+)$/.exec(place)?.[1] ?? [])
    const pascal = (operation: string) => operation.replaceAll(/(?:^|\.)(\w)/g, (_, letter) => letter.toUpperCase())
    const made = new Set(
      operations.flatMap(({ group, name }) =>
        ["Request", "Response", "Params", "Body", "JSONBody", "JSONRequestBody", "RequestBody"].map(
          (suffix) => `${pascal(`${group}.${name}`)}${suffix}`
        )
      )
    )
    expect(components.length).toBeGreaterThan(100)
    expect(components.filter((name) => made.has(name.replaceAll(".", "")))).toEqual([])
  })
})
