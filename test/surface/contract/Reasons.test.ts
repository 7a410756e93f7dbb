import { describe, expect, it } from "@effect/vitest"
import { Either, FastCheck, ParseResult, Schema, SchemaAST } from "effect"
import { Filters } from "../../../src/events/Filters.ts"
import {
  boundedRefusals,
  explained,
  maxMessageLength,
  maxRefusedFields,
  type Reasons
} from "../../../src/platform/bounds/Refusals.ts"
import { anyForm } from "../../../src/platform/bounds/Rules.ts"
import { IdempotencyHeaders } from "../../../src/platform/kit/Request.ts"
import { requestParts, unrefined } from "./RequestParts.ts"

/** What a refusal says of each field of each operation: which one it is, what is right, and what was sent if it may. */

/** What only fields may repeat that hold nothing secret or personal. */
const canary = "s3cretVALUE"

/** What no field may repeat: the number of a card, keys, what is long, and characters that could do harm. */
const canaryNumber = 4_242_424_242_424_242
const never = [
  "4242 4242 4242 4242",
  "sk_test_s3cretVALUE",
  "whsec_s3cretVALUE",
  "pi_1_secret_s3cretVALUE",
  canary.repeat(1000),
  `\u0000${canary}`,
  `https://user:${canary}@shop.example/?${canary}`,
  `<b>${canary}</b>`
]

/** The text fields that repeat what was sent: each was decided on, since callers write anything into a text. */
const echoedTexts: ReadonlySet<string> = new Set([
  "created_gte",
  "created_lte",
  "currencies.0",
  "currency",
  "days",
  "default_price_data.currency",
  "discount.currency",
  "expiresAt",
  "limit",
  "since",
  "type",
  "until"
])

/** A place in a request: keys and indexes from the outside in. */
type Path = ReadonlyArray<string | number>

interface Field {
  readonly path: Path
  readonly required: boolean
  readonly type: SchemaAST.AST
}

/** Every field of a request, those within others included. */
function* fieldsOf(ast: SchemaAST.AST, path: Path): Generator<Field> {
  const base = unrefined(ast)
  switch (base._tag) {
    case "TypeLiteral":
      for (const { isOptional, name, type } of base.propertySignatures) {
        const inner = [...path, String(name)]
        yield { path: inner, required: !isOptional, type }
        yield* fieldsOf(type, inner)
      }
      // Values of any kind are another schema's to judge
      for (const { type } of base.indexSignatures.filter(({ type }) => !SchemaAST.isUnknownKeyword(type))) {
        yield { path: [...path, "key"], required: false, type }
        yield* fieldsOf(type, [...path, "key"])
      }
      return
    case "TupleType":
      for (const { type } of base.rest) {
        yield { path: [...path, 0], required: false, type }
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

const texts = ["", canary, ...never]

const jsonValues = [...texts, canaryNumber, -1.5, true, null, [canary], { [`x`]: canary }]

/** Whether a field takes only numbers, true and false, and words of a list. */
const isPlain = (ast: SchemaAST.AST): boolean => {
  const base = unrefined(ast)
  if (SchemaAST.isUnion(base)) return base.types.every(isPlain)
  return SchemaAST.isNumberKeyword(base) || SchemaAST.isBooleanKeyword(base) || SchemaAST.isLiteral(base)
}

/** What a reason has to repeat: what was sent to a field that may repeat it, if it is short and plain. */
const repeated = ({ path, type }: Field, value: unknown): boolean =>
  (isPlain(type) || echoedTexts.has(path.join("."))) && (value === canary || value === -1.5 || value === true)

/** What may be sent in a place: all but a body is text, or several of them. */
const valuesFor = (place: string): ReadonlyArray<unknown> =>
  place === "body" ? jsonValues : [...texts, [canary, canary]]

const says = /^(?:must (?:be|have|not) |is missing; (?:it must (?:be|have)|\w+ \w+ needs it) )\S/
const repeatedAt = /; got (.*?)(?:, a string)?(?:; did you mean .*\?)?$/

const parts = [
  ...requestParts.map(({ name, place, schema }) => ({ name, place, schema })),
  { name: "filters", place: "body", schema: Schema.make<Filters, unknown>(Filters.ast) }
]

interface Wrong {
  readonly reason: string
  readonly value: unknown
}

/** All reasons that a field is refused for: for each wrong value, and for being absent. */
const reasonsFor = ({ place, schema }: (typeof parts)[number], { path, required }: Field): ReadonlyArray<Wrong> => {
  const dotted = path.join(".")
  const wrong = valuesFor(place).flatMap((value): ReadonlyArray<Wrong> => {
    const reason = reasonsOf(schema, having(path, value)).get(dotted)
    return reason === undefined ? [] : [{ reason, value }]
  })
  expect(wrong.length, `${dotted}: no value was refused`).toBeGreaterThan(0)
  if (!required) return wrong
  const missing = reasonsOf(schema, having(path.slice(0, -1), {})).get(dotted)
  expect(missing, dotted).toMatch(/^is missing; /)
  return missing === undefined ? wrong : [...wrong, { reason: missing, value: undefined }]
}

describe("a refusal", () => {
  it.each(parts)("of $name says of each field what is right, and what was sent only where it may", (part) => {
    for (const field of fieldsOf(SchemaAST.encodedAST(part.schema.ast), [])) {
      const dotted = field.path.join(".")
      for (const { reason, value } of reasonsFor(part, field)) {
        const [, got] = repeatedAt.exec(reason) ?? []
        expect(reason, dotted).toMatch(says)
        expect(reason, dotted).not.toContain(anyForm)
        // What is wrong is another field's absence, not this value
        const ofAnother = reason.startsWith("must not be sent without ")
        if (repeated(field, value) && !ofAnother) expect([reason, got], dotted).toEqual([reason, JSON.stringify(value)])
        else expect([reason, got ?? "null"], dotted).toEqual([reason, "null"])
        if (!repeated(field, value)) expect(reason, dotted).not.toContain(canary)
        expect(reason, dotted).not.toMatch(/4242/)
        expect(reason, dotted).not.toMatch(/undefined|NaN|Infinity|Expected|\[object/)
        expect(reason.length, dotted).toBeLessThan(600)
        expect(explained(new Map([[dotted, reason]])), dotted).toMatch(/^\S.* .*[.?]$/)
        expect(explained(new Map([[dotted, reason]])).startsWith(`\`${dotted}\` `), dotted).toBe(true)
      }
    }
  })

  it("repeats what was sent to each of the text fields that may repeat it, and to no others", () => {
    const echoing = new Set(
      parts.flatMap((part) =>
        [...fieldsOf(SchemaAST.encodedAST(part.schema.ast), [])]
          .filter(({ type }) => !isPlain(type))
          .filter((field) => reasonsFor(part, field).some(({ reason }) => reason.includes("; got ")))
          .map(({ path }) => path.join("."))
      )
    )
    expect([...echoing].toSorted()).toEqual([...echoedTexts].toSorted())
  })

  it("repeats nothing but short, plain text, whatever a caller sends in place of a number", () => {
    const price = parts.find(({ name }) => name.startsWith("POST") && name.endsWith("/prices body"))
    FastCheck.assert(
      FastCheck.property(FastCheck.oneof(FastCheck.string(), FastCheck.jsonValue()), (value) => {
        const reasons =
          price === undefined ? new Map() : reasonsOf(price.schema, { currency: "brl", unit_amount: value })
        const [, got] = repeatedAt.exec(reasons.get("unit_amount") ?? "") ?? []
        expect(got ?? "").toMatch(/^"?[\w .,:+$%/-]{0,30}"?$/)
      })
    )
  })

  it("names several fields with the same rule in one sentence, each with what was sent", () => {
    const reasons = new Map([
      ["events.0", 'must be one of a, b; got "x"'],
      ["events.1", 'must be one of a, b; got "aa"; did you mean a?'],
      ["limit", "in the query must be a number"]
    ])
    expect(explained(reasons)).toBe(
      '`events.0` (got "x") and `events.1` (got "aa"; did you mean a?) must be one of a, b. `limit` in the query must be a number.'
    )
  })

  it("says all that is wrong in the order of the fields, and the same rule once", () => {
    const reasons = new Map([
      ["events.0", "must be one of a, b, c"],
      ["events.1", "must be one of a, b, c"],
      ["name", "is missing; it must be a string"],
      ["nme", "is not a known field; did you mean name?"]
    ])
    expect(explained(reasons)).toBe(
      "`events.0` and `events.1` must be one of a, b, c. `name` is missing; it must be a string. `nme` is not a known field; did you mean name?"
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

describe("a length in a reason", () => {
  it("counts the characters of a header, whose bytes arrive as one character each", () => {
    const lengthOf = (key: string) =>
      /it has (\d+) characters/.exec(
        reasonsOf(IdempotencyHeaders, { "idempotency-key": Buffer.from(key).toString("latin1") }).get(
          "idempotency-key"
        ) ?? ""
      )?.[1]
    for (const character of ["a", "é", "€", "🎁"]) {
      for (const count of [2, 7, 256, 1021, 5000]) {
        expect(lengthOf(character.repeat(count)), `${count} × ${character}`).toBe(String(count))
      }
    }
    expect(lengthOf("é".repeat(255))).toBeUndefined()
  })
})

describe("a refused field", () => {
  const endpoint = parts.find(({ name }) => name.startsWith("POST") && name.endsWith("/endpoints body"))
  const price = parts.find(({ name }) => name.startsWith("POST") && name.endsWith("/prices body"))

  it.each([
    [price, { unit_amount: 15.5 }, "unit_amount", /^must be a whole number from 0 to \d+ in the smallest unit/],
    [price, { unit_amount: "R$ 15,00" }, "unit_amount", /; got "R\$ 15,00", a string$/],
    [price, { unit_amount: null }, "unit_amount", /; got null$/],
    [price, { unit_amount: [1500] }, "unit_amount", /; it is an array$/],
    [price, { unit_amount: "" }, "unit_amount", /; it is a string$/],
    [price, { unit_amount: 1e21 }, "unit_amount", /; got 1e\+21$/],
    [price, { unit_amout: 1500 }, "unit_amout", /; did you mean unit_amount\?$/],
    [price, { recurring: { intervall: "day" } }, "recurring.intervall", /; did you mean interval\?$/],
    [price, { zzz: 1 }, "zzz", /^is not a known field$/],
    [price, { unit_amount: 1, tiers: [] }, "tiers", /^must be an array of 1 to 25 items; it has 0 items$/],
    [
      price,
      { nickname: "a".repeat(251) },
      "nickname",
      /^must be a string of 1 to 250 characters; it has 251 characters$/
    ],
    [price, { nickname: "🎁".repeat(251) }, "nickname", /; it has 251 characters$/],
    [price, { nickname: "" }, "nickname", /; it is empty$/],
    [price, { tax_behavior: "Inclusive" }, "tax_behavior", /; got "Inclusive"; did you mean inclusive\?$/],
    [price, { nickname: "x" }, "product", /^is missing; a price needs it or product_data$/],
    [endpoint, { events: ["payout.paid", "payout.paid"] }, "events", /; payout\.paid appears more than once$/],
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
