import { describe, expect, it } from "@effect/vitest"
import { Either, ParseResult, Schema, SchemaAST } from "effect"
import {
  boundedRefusals,
  explained,
  maxMessageLength,
  maxRefusedFields,
  type Reasons
} from "../../src/bounds/Refusals.ts"
import { anyForm } from "../../src/bounds/Rules.ts"
import { Filters } from "../../src/events/Filters.ts"
import { requestParts } from "./RequestParts.ts"

/** What a refusal says of each field of each operation: which one it is, what is right, and never what was sent. */

/** What no answer may repeat: as a text, as a number, and where texts have a form. */
const canary = "s3cretVALUE"
const canaryNumber = 4_242_424_242_424_242

/** A place in a request: keys and indexes from the outside in. */
type Path = ReadonlyArray<string | number>

interface Field {
  readonly path: Path
  readonly required: boolean
}

const unrefined = (ast: SchemaAST.AST): SchemaAST.AST => (SchemaAST.isRefinement(ast) ? unrefined(ast.from) : ast)

/** Every field of a request, those within others included. */
function* fieldsOf(ast: SchemaAST.AST, path: Path): Generator<Field> {
  const base = unrefined(ast)
  switch (base._tag) {
    case "TypeLiteral":
      for (const { isOptional, name, type } of base.propertySignatures) {
        const inner = [...path, String(name)]
        yield { path: inner, required: !isOptional }
        yield* fieldsOf(type, inner)
      }
      // Values of any kind are another schema's to judge
      for (const { type } of base.indexSignatures.filter(({ type }) => !SchemaAST.isUnknownKeyword(type))) {
        yield { path: [...path, "key"], required: false }
        yield* fieldsOf(type, [...path, "key"])
      }
      return
    case "TupleType":
      for (const { type } of base.rest) {
        yield { path: [...path, 0], required: false }
        yield* fieldsOf(type, [...path, 0])
      }
  }
}

/** A request that has a value at a path, and nothing else. */
const having = ([first, ...rest]: Path, value: unknown): unknown => {
  if (first === undefined) return value
  const inner = having(rest, value)
  return typeof first === "number" ? [inner] : { [first]: inner }
}

const reasonsOf = (schema: Schema.Schema.AnyNoContext, input: unknown): Reasons =>
  Either.match(ParseResult.decodeUnknownEither(schema, { errors: "all", onExcessProperty: "error" })(input), {
    onLeft: (issue) => boundedRefusals(issue),
    onRight: () => new Map()
  })

const texts = ["", canary, canary.repeat(1000), `\u0000${canary}`, `https://user:${canary}@shop.example/?${canary}`]

const jsonValues = [...texts, canaryNumber, -1.5, true, null, [canary], { [`x`]: canary }]

/** What may be sent in a place: all but a body is text, or several of them. */
const valuesFor = (place: string): ReadonlyArray<unknown> =>
  place === "body" ? jsonValues : [...texts, [canary, canary]]

const says = /^(?:must (?:be|have|not) |is missing; (?:it must (?:be|have)|\w+ \w+ needs it) )\S/

const parts = [
  ...requestParts.map(({ name, place, schema }) => ({ name, place, schema })),
  { name: "filters", place: "body", schema: Schema.make<Filters, unknown>(Filters.ast) }
]

/** All reasons that a field is refused for: for each wrong value, and for being absent. */
const reasonsFor = ({ place, schema }: (typeof parts)[number], { path, required }: Field): ReadonlyArray<string> => {
  const dotted = path.join(".")
  const wrong = valuesFor(place).flatMap((value) => {
    const reason = reasonsOf(schema, having(path, value)).get(dotted)
    return reason === undefined ? [] : [reason]
  })
  expect(wrong.length, `${dotted}: no value was refused`).toBeGreaterThan(0)
  if (!required) return wrong
  const missing = reasonsOf(schema, having(path.slice(0, -1), {})).get(dotted)
  expect(missing, dotted).toMatch(/^is missing; /)
  return missing === undefined ? wrong : [...wrong, missing]
}

describe("a refusal", () => {
  it.each(parts)("of $name says of each field what is right, and not what was sent", (part) => {
    for (const field of fieldsOf(SchemaAST.encodedAST(part.schema.ast), [])) {
      const dotted = field.path.join(".")
      for (const reason of reasonsFor(part, field)) {
        expect(reason, dotted).toMatch(says)
        expect(reason, dotted).not.toContain(anyForm)
        expect(reason, dotted).not.toContain(canary)
        expect(reason, dotted).not.toContain(String(canaryNumber))
        expect(reason, dotted).not.toMatch(/undefined|NaN|Infinity|Expected|\[object/)
        expect(reason.length, dotted).toBeLessThan(600)
        if (process.env["DUMP"]) console.log(dotted, reason)
        expect(explained(new Map([[dotted, reason]])), dotted).toMatch(/^\S.* .*[.?]$/)
      }
    }
  })

  it("says all that is wrong in the order of the fields, and the same rule once", () => {
    const reasons = new Map([
      ["events.0", "must be one of a, b, c"],
      ["events.1", "must be one of a, b, c"],
      ["name", "is missing; it must be a string"],
      ["nme", "is not a field that is known here; did you mean name?"]
    ])
    expect(explained(reasons)).toBe(
      "events.0 and events.1 must be one of a, b, c. name is missing; it must be a string. nme is not a field that is known here; did you mean name?"
    )
  })

  it("stays within its bound, however much is wrong, and says how many fields it leaves out", () => {
    const reasons = new Map(
      Array.from({ length: maxRefusedFields }, (_, n) => [
        `${n}`.padEnd(200, "k"),
        `must be ${`${n}`.padEnd(500, "w")}`
      ])
    )
    const text = explained(reasons)
    expect(text.length).toBeLessThanOrEqual(maxMessageLength)
    expect(text).toMatch(/ `fields` names \d+ more\.$/)
    expect(explained(new Map([["k".repeat(200), "w".repeat(100_000)]])).length).toBeLessThanOrEqual(maxMessageLength)
  })
})

describe("a refused field", () => {
  const endpoint = parts.find(({ name }) => name.startsWith("POST") && name.endsWith("/endpoints body"))
  const price = parts.find(({ name }) => name.startsWith("POST") && name.endsWith("/prices body"))

  it.each([
    [price, { unit_amount: 15.5 }, "unit_amount", /^must be a whole number from 0 to \d+ in the smallest unit/],
    [price, { unit_amount: "1500" }, "unit_amount", /; it is a string$/],
    [price, { unit_amout: 1500 }, "unit_amout", /; did you mean unit_amount\?$/],
    [price, { recurring: { intervall: "day" } }, "recurring.intervall", /; did you mean interval\?$/],
    [price, { zzz: 1 }, "zzz", /^is not a field that is known here$/],
    [price, { unit_amount: 1, tiers: [] }, "tiers", /^must be an array of 1 to 25 items; it has 0 items$/],
    [
      price,
      { nickname: "a".repeat(251) },
      "nickname",
      /^must be a string of 1 to 250 characters; it has 251 characters$/
    ],
    [price, { nickname: "" }, "nickname", /; it is empty$/],
    [price, { currency: "BRL" }, "currency", /^must be a lowercase ISO 4217 code, such as brl$/],
    [price, { tax_behavior: "Inclusive" }, "tax_behavior", /; did you mean inclusive\?$/],
    [price, { nickname: "x" }, "product", /^is missing; a price needs it or product_data$/],
    [endpoint, { events: ["payment.suceeded"] }, "events.0", /; did you mean payment\.succeeded\?$/],
    [endpoint, { events: ["payout.paid", "payout.paid"] }, "events", /; payout\.paid is there more than once$/],
    [endpoint, { name: "  " }, "name", /^must be text of 1 to 100 characters/],
    [endpoint, "text", "", /^must be an object with name, url and events; it is a string$/],
    [endpoint, null, "", /; it is null$/]
  ])("%#: is refused for a reason that helps", (part, input, field, expected) => {
    const good = part === price ? { currency: "brl", unit_amount: 1 } : {}
    const whole = typeof input === "object" && input !== null && Object.keys(input).length > 0
    const reasons = part === undefined ? new Map() : reasonsOf(part.schema, whole ? { ...good, ...input } : input)
    expect(reasons.get(field)).toMatch(expected)
  })
})
