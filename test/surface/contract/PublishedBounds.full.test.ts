import { OpenApi } from "@effect/platform"
import { describe, expect, it } from "@effect/vitest"
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js"
import addFormats from "ajv-formats"
import { Arbitrary, Either, FastCheck, Option, ParseResult, Predicate, Schema, SchemaAST } from "effect"
import { parseDestination } from "../../../src/engine/transport/DestinationUrl.ts"
import { Filters } from "../../../src/events/Filters.ts"
import { Api } from "../../../src/surface/contract/Api.ts"
import { type RequestPart, refinementsOf, requestParts, saidOf, unrefined } from "./RequestParts.ts"

/** The OpenAPI document and the code judge every field alike, but for what JSON Schema can't say. */

/**
 * Fields of which the document takes what the code refuses (`wider`), or the other way round (`narrower`), and why. A
 * field that is not here must be judged alike by both.
 */
const unsaid: ReadonlyArray<{ readonly field: RegExp; readonly document: "wider" | "narrower"; readonly why: string }> =
  [
    {
      field:
        /(endpoints(\/:id)?|api-keys|organizations(\/:organizationId)?) body\.name$|checkout-pages(\/:id)? body\.(title|collect\..*\.label)$/,
      document: "narrower",
      why: "blanks around a name are cut off before it is judged"
    },
    {
      field: /organizations(\/:organizationId)? body\.name$/,
      document: "wider",
      why: "what reads as a link, in any of Unicode's forms of its characters, is in words in the description"
    },
    {
      field: /products(\/:id)? body\.(images\[\]|url)$/,
      document: "wider",
      why: "whether a host and a port are such is the URL parser's to say"
    },
    {
      field: /prices query\.lookup_keys$/,
      document: "narrower",
      why: "a list with one item is written in a query like a text"
    },
    {
      field: /return-urls body\.(success|cancel)Url$/,
      document: "wider",
      why: "whether a host and a port are such is the URL parser's to say"
    },
    { field: /integrations\/endpoints body\.url$/, document: "wider", why: "a public host, and port 443 written out" },
    { field: /body\.(expiresAt|since|until)$/, document: "wider", why: "an offset may lead out of the years 1 to 9999" }
  ]

/** Rules over several fields or items at once, in words in the document: the objects and arrays that have them. */
const rulesOverSeveral = [
  "PATCH /checkout-pages/:id body.collect.customFields",
  "PATCH /checkout-pages/:id body.collect.customFields[]",
  "PATCH /checkout-pages/:id body.items",
  "PATCH /checkout-pages/:id body.items[]",
  "PATCH /prices/:id body",
  "PATCH /products/:id body",
  "PATCH /products/:id body.default_price_data",
  "PATCH /products/:id body.default_price_data.custom_unit_amount",
  "PATCH /products/:id body.default_price_data.recurring",
  "POST /checkout-pages body.collect.customFields",
  "POST /checkout-pages body.collect.customFields[]",
  "POST /checkout-pages body.items",
  "POST /checkout-pages body.items[]",
  "POST /payment-links body.line_items[].adjustable_quantity",
  "POST /prices body",
  "POST /prices body.custom_unit_amount",
  "POST /prices body.recurring",
  "POST /prices body.tiers",
  "POST /prices body.tiers[]",
  "POST /products body.default_price_data",
  "POST /products body.default_price_data.custom_unit_amount",
  "POST /products body.default_price_data.recurring",
  "POST /promotion-codes body",
  "POST /promotion-codes body.discount",
  "POST /refunds body",
  "POST /search body"
]

type JsonSchema = Readonly<Record<string, unknown>>

const document: JsonSchema = JSON.parse(JSON.stringify(OpenApi.fromApi(Api)))

const at = (root: unknown, ...keys: ReadonlyArray<string>): unknown => {
  let current = root
  for (const key of keys) current = Predicate.isRecord(current) ? current[key] : undefined
  return current
}

const ajv = addFormats.default(new Ajv2020({ strict: false, allErrors: true }))
const components = Object.fromEntries(
  Object.entries(Object(at(document, "components", "schemas"))).filter(
    ([, schema]) => !JSON.stringify(schema).includes('"$id"')
  )
)
ajv.addSchema({ $id: "openapi", components: { schemas: components } })

const compile = (schema: JsonSchema): ValidateFunction =>
  ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', '"openapi#/components/')))

/** A schema of the document, where it refers to another that one with what is said beside. */
const resolved = (schema: unknown): JsonSchema => {
  if (!Predicate.isRecord(schema)) return {}
  const { $ref, ...beside } = schema
  return Predicate.isString($ref) ? { ...resolved(at(document, ...$ref.slice(2).split("/"))), ...beside } : schema
}

const saidOfPart = ({ method, path, place }: RequestPart): JsonSchema => {
  const operation = at(document, "paths", path.replaceAll(/:(\w+)/g, "{$1}"), method.toLowerCase())
  if (place === "body") return resolved(at(operation, "requestBody", "content", "application/json", "schema"))
  const parameters = at(operation, "parameters")
  const own = (Array.isArray(parameters) ? parameters : []).filter((parameter) => at(parameter, "in") === place)
  return {
    type: "object",
    properties: Object.fromEntries(own.map((parameter) => [String(at(parameter, "name")), at(parameter, "schema")])),
    required: own.filter((parameter) => at(parameter, "required") === true).map((parameter) => at(parameter, "name"))
  }
}

/** A field: how it is called, what the code judges it by, and what the document says of it. */
interface Field {
  readonly name: string
  readonly place: RequestPart["place"]
  readonly ast: SchemaAST.AST
  readonly said: JsonSchema
}

/** A rule over several fields or items: one that the document has only words for. */
const isRule = (ast: SchemaAST.Refinement): boolean => {
  const base = unrefined(ast)
  return (
    Object.keys(saidOf(ast)).length === 0 &&
    (SchemaAST.isTupleType(base) || (SchemaAST.isTypeLiteral(base) && base.propertySignatures.length > 0))
  )
}

/** The same without such rules, on every level. */
const withoutRules = (ast: SchemaAST.AST): SchemaAST.AST => {
  switch (ast._tag) {
    case "Refinement": {
      const from = withoutRules(ast.from)
      return isRule(ast) ? from : new SchemaAST.Refinement(from, ast.filter, ast.annotations)
    }
    case "TypeLiteral":
      return new SchemaAST.TypeLiteral(
        ast.propertySignatures.map(
          ({ annotations, isOptional, isReadonly, name, type }) =>
            new SchemaAST.PropertySignature(name, withoutRules(type), isOptional, isReadonly, annotations)
        ),
        ast.indexSignatures,
        ast.annotations
      )
    case "TupleType":
      return new SchemaAST.TupleType(
        ast.elements,
        ast.rest.map(({ annotations, type }) => new SchemaAST.Type(withoutRules(type), annotations)),
        ast.isReadonly,
        ast.annotations
      )
    default:
      return ast
  }
}

/** Every field of a schema, itself included, with its place in the document. */
const fieldsOf = (field: Field): ReadonlyArray<Field> => {
  const base = unrefined(field.ast)
  const within = (name: string, ast: SchemaAST.AST, said: unknown) =>
    fieldsOf({ ...field, name: `${field.name}${name}`, ast, said: resolved(said) })
  if (SchemaAST.isTypeLiteral(base)) {
    return [
      field,
      ...base.propertySignatures.flatMap(({ name, type }) =>
        // Judged key by key, with error codes of its own
        within(`.${String(name)}`, name === "filters" ? Filters.ast : type, at(field.said, "properties", String(name)))
      ),
      ...base.indexSignatures.flatMap(({ parameter, type }) => [
        ...within(" key", parameter, at(field.said, "propertyNames")),
        ...within(".*", type, at(field.said, "additionalProperties"))
      ])
    ]
  }
  return SchemaAST.isTupleType(base)
    ? [field, ...base.rest.flatMap(({ type }) => within("[]", type, at(field.said, "items")))]
    : [field]
}

const shortName = (name: string): string => name.replace("/v2/organizations/:organizationId/provider", "")

const fields: ReadonlyArray<Field> = requestParts.flatMap((part) =>
  fieldsOf({ name: part.name, place: part.place, ast: part.schema.ast, said: saidOfPart(part) })
)

/** Numbers and booleans are text in a path, a query and a header. */
const asWritten = ({ place, said }: Field, value: unknown): unknown => {
  if (place === "body" || typeof value !== "string") return value
  if (said["type"] === "integer" && /^\d{1,15}$/.test(value)) return Number(value)
  if (said["type"] === "boolean" && /^(true|false)$/.test(value)) return value === "true"
  return value
}

const judgeOf = ({ ast, name }: Field): ((value: unknown) => boolean) => {
  const decode = ParseResult.decodeUnknownEither(Schema.make<unknown, unknown>(withoutRules(ast)), {
    onExcessProperty: "error"
  })
  const isDestination = name.endsWith("/integrations/endpoints body.url")
  return (value) =>
    Either.isRight(decode(value)) &&
    (!isDestination || Either.isRight(parseDestination(String(value), { allowLocal: false })))
}

const numbersOf = (said: unknown): ReadonlyArray<number> =>
  Predicate.isRecord(said)
    ? Object.values(said).flatMap((part) => (typeof part === "number" ? [part] : numbersOf(part)))
    : Array.isArray(said)
      ? said.flatMap(numbersOf)
      : []

const pieces = ["a", "A", "1", "_", " ", "é", "😀", "[", "\n", "\u0000", "/"]

/** Texts at each of the document's lengths and beside them, and others that forms tend to be wrong about. */
const textsAt = (lengths: ReadonlyArray<number>): ReadonlyArray<string> => [
  ...lengths
    .filter((length) => length <= 4096)
    .flatMap((length) => [length - 1, length, length + 1])
    .filter((length) => length >= 0)
    .flatMap((length) => pieces.map((piece) => piece.repeat(length))),
  "https://shop.example/a.png",
  "HTTPS://shop.example",
  "http://shop.example/a.png",
  "https://shop.example/a b",
  "https://shop.example/a\nb",
  "https://user:pass@shop.example/",
  "https://shop.example:8443/",
  "https://shop.example/?a=1",
  "https://shop.example/#a",
  "https://localhost/",
  "https://",
  "https://[/a.png",
  "javascript:alert(1)",
  "ana@example.com",
  "ana@@example.com",
  "2026-01-31T09:30:00.000Z",
  "2026-02-31T09:30:00Z",
  "2024-02-29T09:30:00Z",
  "2023-02-29T09:30:00Z",
  "2026-01-31t09:30:00z",
  "2026-01-31 09:30:00Z",
  "2026-01-31T24:00:00Z",
  "2026-01-31T23:59:60Z",
  "9999-12-31T23:59:59-00:01",
  "0000-01-01T00:00:00Z",
  "urn:uuid:0199c0de-0000-7000-8000-000000000001",
  "0199C0DE-0000-7000-8000-000000000001",
  "__proto__"
]

const kinds = [null, true, "", 0, [], {}, [null], { "": null }]

/** Texts and numbers that may be right or wrong for a field, near to each of its bounds. */
const scalars = (field: Field): ReadonlyArray<unknown> => {
  const numbers = numbersOf(field.said)
  const right: ReadonlyArray<unknown> = FastCheck.sample(
    Arbitrary.make(
      Schema.make<unknown, unknown>(SchemaAST.typeAST(withoutRules(SchemaAST.encodedBoundAST(field.ast))))
    ),
    { numRuns: 15, seed: 20_260_131 }
  )
  const texts = [
    ...textsAt(numbers),
    ...right
      .filter(Predicate.isString)
      .flatMap((text) => [text, `${text}\n`, ` ${text}`, `${text} `, `${text}\u0000`, text.toUpperCase()]),
    ...FastCheck.sample(FastCheck.string({ unit: "grapheme", maxLength: 50 }), { numRuns: 30, seed: 7 })
  ]
  return [
    ...kinds,
    ...right,
    // No more can come in a header, and nothing but text in what is no body
    ...(field.place === "header" ? texts.filter((text) => /^[\x20-\x7e]*$/.test(text) && text.trim() === text) : texts),
    ...(field.place === "body" ? numbers.flatMap((n) => [n - 1, n, n + 1, n + 0.5, -n]) : []),
    ...(field.place === "body" ? [1e300, 9_007_199_254_740_992, 1e-7] : [])
  ].filter((value) => field.place === "body" || typeof value === "string")
}

const rightValue = (field: Field): Option.Option<unknown> =>
  Option.fromNullable(samples(field).find(Predicate.isNotNull))

const samples = (field: Field): ReadonlyArray<unknown> => {
  const judge = judgeOf(field)
  const fits = compile(field.said)
  return candidates(field).filter((value) => judge(value) && fits(asWritten(field, value)))
}

const distinct = (values: ReadonlyArray<unknown>, count: number): ReadonlyArray<unknown> =>
  Array.from({ length: count }, (_, index) => values[index % values.length])

const partsWithin = (field: Field, suffix: string): Field | undefined =>
  fields.find(({ name }) => name === `${field.name}${suffix}`)

const lists = (field: Field): ReadonlyArray<unknown> => {
  const item = partsWithin(field, "[]")
  const right =
    item === undefined ? [] : [...new Map(samples(item).map((value) => [JSON.stringify(value), value])).values()]
  const lengths = [...numbersOf({ ...field.said, items: null }), 0, 1, 2].flatMap((n) => [n - 1, n, n + 1])
  return [...kinds, ...lengths.filter((n) => n >= 0 && n < 200).map((n) => distinct(right, n))]
}

const maps = (field: Field): ReadonlyArray<unknown> => {
  const [value] = Option.toArray(Option.flatMap(Option.fromNullable(partsWithin(field, ".*")), rightValue))
  const counts = numbersOf({ ...field.said, propertyNames: null, patternProperties: null }).flatMap((n) => [
    n - 1,
    n,
    n + 1
  ])
  const ofKeys = (keys: ReadonlyArray<string>) => Object.fromEntries(keys.map((key) => [key, value]))
  return [
    ...kinds,
    ...counts.map((count) => ofKeys(Array.from({ length: count }, (_, n) => `k${n}`))),
    ...textsAt([40])
      .filter((key) => key !== "__proto__")
      .map((key) => ofKeys([key])),
    ofKeys(["svc_source"])
  ]
}

const objects = (field: Field): ReadonlyArray<unknown> => {
  const base = unrefined(field.ast)
  if (!SchemaAST.isTypeLiteral(base)) return []
  const all = base.propertySignatures.flatMap(({ isOptional, name }) => {
    const part = partsWithin(field, `.${String(name)}`)
    return part === undefined
      ? []
      : Option.toArray(Option.map(rightValue(part), (value) => ({ name: String(name), isOptional, value })))
  })
  const of = (chosen: typeof all) => Object.fromEntries(chosen.map(({ name, value }) => [name, value]))
  return [
    ...kinds,
    of(all),
    of(all.filter(({ isOptional }) => !isOptional)),
    ...all.map(({ name }) => of(all.filter((other) => other.name !== name))),
    ...all.map(({ name }) => ({ ...of(all), [name]: null })),
    ...(field.place === "body"
      ? [
          { ...of(all), unknown: 1 },
          { ...of(all), constructor: 1 }
        ]
      : [])
  ]
}

const known = new Map<string, ReadonlyArray<unknown>>()

const candidates = (field: Field): ReadonlyArray<unknown> => {
  const found = known.get(field.name)
  if (found !== undefined) return found
  const base = unrefined(field.ast)
  const made = SchemaAST.isTypeLiteral(base)
    ? base.indexSignatures.length > 0
      ? maps(field)
      : objects(field)
    : SchemaAST.isTupleType(base)
      ? lists(field)
      : scalars(field)
  known.set(field.name, made)
  return made
}

describe("the OpenAPI document", () => {
  it("says of every field what the code takes, and no other", () => {
    expect(fields.length).toBeGreaterThan(200)
    const used = new Set<RegExp>()
    for (const field of fields.filter(({ place, name }) => place === "body" || /[.]/.test(name))) {
      const judge = judgeOf(field)
      const fits = compile(field.said)
      const values = candidates(field)
      const exceptions = unsaid.filter(({ field: names }) => names.test(field.name))
      let taken = 0
      for (const value of values) {
        const [code, said] = [judge(value), fits(asWritten(field, value))]
        if (code) taken += 1
        if (code === said) continue
        const exception = exceptions.find(({ document }) => document === (said ? "wider" : "narrower"))
        const shown = JSON.stringify(value)?.slice(0, 120)
        expect(
          exception,
          `${field.name}: the code ${code ? "takes" : "refuses"} ${shown}; ${JSON.stringify(field.said).slice(0, 400)}`
        ).toBeDefined()
        if (exception !== undefined) used.add(exception.field)
      }
      expect(taken, `no value of ${field.name} is taken: ${JSON.stringify(field.said).slice(0, 300)}`).toBeGreaterThan(
        0
      )
      expect(taken, `every value of ${field.name} is taken`).toBeLessThan(values.length)
    }
    // An exception that nothing needs any more goes
    expect(unsaid.filter(({ field }) => !used.has(field)).map(({ field }) => field.source)).toEqual([])
  })

  it("leaves to words what is a rule over several fields, and nothing else", () => {
    const ruled = fields.filter(({ ast }) => refinementsOf(ast).some(isRule)).map(({ name }) => shortName(name))
    expect(ruled.toSorted()).toEqual(rulesOverSeveral)
  })
})
