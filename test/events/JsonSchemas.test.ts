import { describe, expect, it } from "@effect/vitest"
import { Ajv2020 } from "ajv/dist/2020.js"
import addFormats from "ajv-formats"
import { Arbitrary, FastCheck, Predicate, Schema } from "effect"
import { EventType } from "../../src/events/Catalog.ts"
import { Envelope } from "../../src/events/Envelope.ts"
import {
  anyEventJsonSchema,
  anyEventSchemaPath,
  eventJsonSchemas,
  eventSchemaPath,
  type JsonSchema
} from "../../src/events/JsonSchemas.ts"

const schemas = [...eventJsonSchemas]

/** Strict: a keyword that no validator knows, or a format that is none, fails the compilation. */
const ajv = addFormats.default(new Ajv2020({ allErrors: true, strict: true, allowUnionTypes: true }))
for (const [, schema] of schemas) ajv.addSchema({ ...schema })
ajv.addSchema({ ...anyEventJsonSchema })

const fits = (path: string, value: unknown): boolean => {
  const validate = ajv.getSchema(path)
  if (validate === undefined) throw new Error(`No schema has the id ${path}`)
  return validate(value) === true
}

const record = (value: unknown): JsonSchema => (Predicate.isRecord(value) ? value : {})

const resolved = (schema: JsonSchema, part: unknown): JsonSchema => {
  const reference = record(part)["$ref"]
  return typeof reference === "string"
    ? record(record(schema["$defs"])[reference.replace("#/$defs/", "")])
    : record(part)
}

interface Field {
  readonly path: string
  readonly name: string
  /** What is said of it: itself, or of what it is where it is not null. */
  readonly said: ReadonlyArray<string>
}

const sentencesOf = (schema: JsonSchema, part: JsonSchema): ReadonlyArray<string> => {
  const alternatives = Array.isArray(part["anyOf"]) ? part["anyOf"] : []
  return [part, ...alternatives.map((one) => resolved(schema, one))].flatMap(({ description }) =>
    typeof description === "string" ? [description] : []
  )
}

const fieldsOf = (schema: JsonSchema, part: JsonSchema = schema, path = ""): ReadonlyArray<Field> =>
  Object.entries(record(part["properties"])).flatMap(([name, value]) => {
    const field = resolved(schema, value)
    const said = [...sentencesOf(schema, record(value)), ...sentencesOf(schema, field)]
    return [{ path: `${path}/${name}`, name, said }, ...fieldsOf(schema, field, `${path}/${name}`)]
  })

const objectsIn = (value: unknown): ReadonlyArray<JsonSchema> => {
  if (Array.isArray(value)) return value.flatMap(objectsIn)
  return Predicate.isRecord(value) ? [value, ...Object.values(value).flatMap(objectsIn)] : []
}

const envelopes = Arbitrary.make(Envelope)

describe("the published schemas", () => {
  it("are one for each of the 19 types, and one of any event that holds them all", () => {
    expect(schemas.map(([type]) => type).toSorted()).toEqual(EventType.literals.toSorted())
    for (const [type, schema] of schemas) {
      expect(schema).toMatchObject({ $id: `/schemas/events/${type}.json`, title: type })
    }
    expect(anyEventJsonSchema["oneOf"]).toEqual(
      EventType.literals.map((type) => ({ $ref: `#/$defs/Event.${type}`, description: expect.any(String) }))
    )
  })

  it("of any event works as a file, alone and wherever it is kept", () => {
    const references = objectsIn(anyEventJsonSchema).flatMap(({ $ref }) => (typeof $ref === "string" ? [$ref] : []))
    expect(references.length).toBeGreaterThan(19)
    const kept = new Set(Object.keys(record(anyEventJsonSchema["$defs"])).map((name) => `#/$defs/${name}`))
    expect(references.filter((reference) => !kept.has(reference))).toEqual([])
    const { $id: _id, ...file } = anyEventJsonSchema
    const alone = addFormats.default(new Ajv2020({ strict: true, allowUnionTypes: true })).compile(file)
    for (const envelope of FastCheck.sample(envelopes, { numRuns: 20, seed: 1 })) {
      expect(alone(JSON.parse(JSON.stringify(envelope)))).toBe(true)
    }
    expect(alone({ type: "payment.succeeded" })).toBe(false)
  })

  it("take events of later versions, which have further fields at every level", () => {
    const later = (value: unknown): unknown =>
      Predicate.isRecord(value)
        ? {
            ...Object.fromEntries(
              // A map of payment methods has no fields
              Object.entries(value).map(([key, part]) => [key, key === "capabilities" ? part : later(part)])
            ),
            added_later: ["anything"]
          }
        : value
    for (const envelope of FastCheck.sample(envelopes, { numRuns: 100, seed: 1 })) {
      const wire = later(JSON.parse(JSON.stringify(envelope)))
      expect([fits(eventSchemaPath(envelope.type), wire), fits(anyEventSchemaPath, wire)]).toEqual([true, true])
    }
  })

  it.each(schemas)("%s stands alone, version 1, and is open at every level", (type, schema) => {
    expect(schema).toMatchObject({
      type: "object",
      required: ["id", "type", "version", "created_at", "livemode", "organization_id", "source", "data"],
      properties: { type: { enum: [type] }, version: { enum: [1] }, test: { enum: [true] } }
    })
    for (const object of objectsIn(schema)) {
      if (typeof object["$ref"] === "string") expect(object["$ref"]).toMatch(/^#\/\$defs\//)
      if (Object.keys(record(object["properties"])).length > 0)
        expect(object).not.toHaveProperty("additionalProperties")
    }
  })

  it.each(schemas)(
    "%s says a sentence of each field: amounts in the smallest unit, times in their form",
    (_, schema) => {
      const fields = fieldsOf(schema)
      expect(fields.length).toBeGreaterThan(11)
      for (const { name, path, said } of fields) {
        const text = said.join(" ")
        expect([path, text]).toEqual([path, expect.stringMatching(/^[A-Z].{5,}/)])
        if (name.startsWith("amount"))
          expect([path, text]).toEqual([path, expect.stringMatching("smallest currency unit")])
        if (/_date$|_deadline$/.test(name)) expect([path, text]).toEqual([path, expect.stringMatching("Unix seconds")])
        if (name === "created_at") expect(text).toContain("ISO 8601")
        // Names of checks are for the code's readers
        expect(text).not.toMatch(/minLength|nonNegative|pattern\(/)
      }
      expect(JSON.stringify(schema)).not.toMatch(/"title":"(minLength|nonNegative|int)/)
    }
  )

  it("take every envelope that the service can make, as its type's and as no other's", () => {
    FastCheck.assert(
      FastCheck.property(envelopes, (envelope) => {
        const wire = JSON.parse(JSON.stringify(envelope))
        for (const type of EventType.literals) {
          expect([type, fits(eventSchemaPath(type), wire)]).toEqual([type, type === envelope.type])
        }
        expect(fits(anyEventSchemaPath, wire)).toBe(true)
      }),
      { numRuns: 200 }
    )
  })

  it("judge as the service itself does, whatever one field is changed to", () => {
    const isEnvelope = Schema.is(Envelope)
    // The service refuses integers that JavaScript can't tell from their neighbours; JSON Schema knows no such bound
    const anything = FastCheck.jsonValue().filter((value) => !/\d{16}|\de\+/.test(JSON.stringify(value)))
    FastCheck.assert(
      FastCheck.property(
        envelopes.chain((envelope) =>
          FastCheck.tuple(
            FastCheck.constant(envelope),
            FastCheck.oneof(FastCheck.constantFrom(...Object.keys(envelope.data)), FastCheck.string()),
            FastCheck.constantFrom("data", "envelope", "nothing"),
            anything
          )
        ),
        ([envelope, field, where, value]) => {
          const changed: unknown = JSON.parse(
            JSON.stringify(
              where === "data"
                ? { ...envelope, data: { ...envelope.data, [field]: value } }
                : { ...envelope, ...(where === "envelope" ? { [field]: value } : {}) }
            )
          )
          expect(fits(eventSchemaPath(envelope.type), changed)).toBe(isEnvelope(changed))
        }
      ),
      { numRuns: 500 }
    )
  })
})
