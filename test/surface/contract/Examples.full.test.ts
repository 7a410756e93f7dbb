import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { Ajv2020 } from "ajv/dist/2020.js"
import addFormats from "ajv-formats"
import { Either, Option, ParseResult, Schema } from "effect"
import { documentedErrors, errorSchema } from "../../../src/platform/errors/Errors.ts"
import { operations } from "../../../src/surface/contract/Api.ts"
import { describedIn, recordIn } from "../../../src/surface/contract/Document.ts"
import { examplesFolder, openApiDocument } from "../../../src/surface/docs/OpenApiDocument.ts"
import { onServiceWithMail } from "../../harness/SignIn.ts"
import { describe, expect, it } from "../../harness/Tests.ts"
import { runExamples } from "./ExampleRun.ts"
import { exampleFiles } from "./ExampleValues.ts"

const stored = (): Readonly<Record<string, string>> =>
  Object.fromEntries(
    readdirSync(examplesFolder).map((file) => [file, readFileSync(new URL(file, examplesFolder), "utf8")])
  )

/** `npm run docs:examples` runs this file with it. */
const writes = process.env["WRITE_EXAMPLES"] === "1"

// The examples of the mailed links' pages are of a service without the console, which has pages of its own
onServiceWithMail({ console: false, roles: { api: true, worker: true } })(
  "the examples of the OpenAPI document",
  (it) => {
    it.scoped(
      "are what a run sends and is answered: `npm run docs:examples` records them",
      function* () {
        const runAt = Date.now()
        const recorded = Object.fromEntries(
          Object.entries(exampleFiles(yield* runExamples, runAt)).map(([name, content]) => [
            `${name}.json`,
            `${JSON.stringify(content, null, 2)}\n`
          ])
        )
        if (writes) {
          rmSync(examplesFolder, { recursive: true, force: true })
          mkdirSync(examplesFolder, { recursive: true })
          for (const [file, text] of Object.entries(recorded)) writeFileSync(new URL(file, examplesFolder), text)
        }
        expect(recorded).toEqual(stored())
      },
      // It calls every operation
      240_000
    )
  }
)

/** Pages for people, pictures and the bytes of uploads, of which an example would say nothing. */
const isData = (type: string) => !/^(?:text\/html|image\/|multipart\/)/.test(type)

const isDecodedBy = (schema: Schema.Schema.All, example: unknown): boolean =>
  Either.isRight(ParseResult.decodeUnknownEither(Schema.make(schema.ast))(example))

// It is made from what is stored when this file is loaded
describe.skipIf(writes)("the examples in the OpenAPI document", () => {
  const document = openApiDocument()
  const ajv = addFormats.default(new Ajv2020({ strict: false, allErrors: true }))
  ajv.addSchema({ $id: "openapi", components: { schemas: recordIn(document, "components", "schemas") } })

  const expectFitting = (place: string, schema: unknown, example: unknown) => {
    const fits = ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"openapi#/')))
    expect([place, fits(example), fits.errors]).toEqual([place, true, null])
  }

  const described = operations.map((operation) => ({
    ...operation,
    place: `${operation.group}.${operation.name}`,
    said: describedIn(document, operation)
  }))

  it("show every request and every answer of every operation, as its schemas have it", () => {
    for (const { endpoint, place, said } of described) {
      for (const [type, content] of Object.entries(recordIn(said, "requestBody", "content")).filter(([t]) =>
        isData(t)
      )) {
        const { example, schema } = recordIn(content)
        expect([place, type, example !== undefined]).toEqual([place, type, true])
        expectFitting(`${place} request`, schema, example)
        const { payloadSchema } = endpoint
        if (Option.isSome(payloadSchema)) expect(isDecodedBy(payloadSchema.value, example), place).toBe(true)
      }
      const [status, succeeded] = Object.entries(recordIn(said, "responses")).find(([code]) => code < "300") ?? []
      const contents = Object.entries(recordIn(succeeded, "content")).filter(([type]) => isData(type))
      if (contents.length === 0) continue
      for (const [, content] of contents) {
        const { schema } = recordIn(content)
        const example = recordIn(content, "examples", "example")["value"]
        expect([place, status, example !== undefined]).toEqual([place, status, true])
        expectFitting(`${place} answer`, schema, example)
        expect(isDecodedBy(endpoint.successSchema, example), place).toBe(true)
      }
    }
  })

  it("show every parameter in a path, and an idempotency key of its own for each operation", () => {
    const keys = new Set<unknown>()
    for (const { endpoint, place, said } of described) {
      const parameters = Array.isArray(said["parameters"]) ? said["parameters"].map((one) => recordIn(one)) : []
      for (const { example, in: where, name, schema } of parameters) {
        if (where === "path") expect([place, name, example !== undefined]).toEqual([place, name, true])
        if (example !== undefined) expectFitting(`${place} ${name}`, schema, example)
        if (name !== "idempotency-key" || Option.isNone(endpoint.headersSchema)) continue
        expect(keys.has(example), place).toBe(false)
        keys.add(example)
        expect(isDecodedBy(endpoint.headersSchema.value, { "idempotency-key": example }), place).toBe(true)
      }
    }
    expect(keys.size).toBeGreaterThan(15)
  })

  it("show the answer of every error that an operation has, in the error's schema", () => {
    const tags = new Set<string>()
    for (const { said } of described) {
      for (const [, response] of Object.entries(recordIn(said, "responses")).filter(([code]) => code >= "400")) {
        const { schema } = recordIn(response, "content", "application/json")
        for (const [, tag = ""] of JSON.stringify(schema).matchAll(/schemas\/(\w+)/g)) tags.add(tag)
      }
    }
    expect(tags.size).toBeGreaterThan(40)
    for (const tag of tags) {
      const { examples } = recordIn(document, "components", "schemas", tag)
      const [example] = Array.isArray(examples) ? examples : []
      expectFitting(tag, { $ref: `#/components/schemas/${tag}` }, example)
      const errorClass = documentedErrors.find((known) => known.tag === tag)
      expect(errorClass !== undefined && isDecodedBy(errorSchema(errorClass), example), tag).toBe(true)
    }
  })

  it("hold nothing of a machine, and no secret but those that are plainly none", () => {
    const text = Object.values(stored()).join("")
    expect(text).not.toMatch(/127\.0\.0\.1|localhost|client_secret/)
    const secrets = [...text.matchAll(/\b(?:whsec|[sp]k_test|[sp]k_live)_[^"]*/g)].map(([secret]) => secret)
    expect(secrets.length).toBeGreaterThan(3)
    for (const secret of secrets) expect(secret).toMatch(/^\w+_(?:(?:example-)+exa|(?:EXAMPLE\+)+EXA=|)$/)
  })
})
