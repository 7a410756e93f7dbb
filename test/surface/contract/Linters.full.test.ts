import { fileURLToPath } from "node:url"
import { describe, expect, it } from "@effect/vitest"
import { createConfig, lintFromString } from "@redocly/openapi-core"
import spectral from "@stoplight/spectral-core"
import rulesets from "@stoplight/spectral-rulesets"
import { Predicate } from "effect"
import { operations } from "../../../src/surface/contract/Api.ts"
import { describedIn, recordIn } from "../../../src/surface/contract/Document.ts"
import { openApiDocument } from "../../../src/surface/docs/OpenApiDocument.ts"

const document = openApiDocument()
const source = JSON.stringify(document)

/** What the linters must complain about, or they don't look. */
const withoutServers = { openapi: "3.1.0", info: document["info"], servers: [], paths: {} }

const schemas = recordIn(document, "components", "schemas")

const parameters = operations.flatMap((operation) => {
  const listed = describedIn(document, operation)["parameters"]
  return Array.isArray(listed) ? listed.map((one: unknown) => recordIn(one)) : []
})

/** All fields of a schema without a description, by their place. */
const bareFields = (schema: unknown, place: string): ReadonlyArray<string> => {
  if (Array.isArray(schema)) return schema.flatMap((part, index) => bareFields(part, `${place}/${index}`))
  if (!Predicate.isRecord(schema)) return []
  const bare = Object.entries(recordIn(schema, "properties")).flatMap(([name, field]) =>
    Predicate.isString(recordIn(field)["description"]) ? [] : [`${place}.${name}`]
  )
  const parts = Object.entries(schema).filter(
    ([keyword]) => !["enum", "const", "example", "examples"].includes(keyword)
  )
  return [...bare, ...parts.flatMap(([keyword, part]) => bareFields(part, `${place}/${keyword}`))]
}

/** Words that say nothing beyond a name. */
const empty = new Set(
  "a an and are be is it its of or that the their this to was were what when whether which who why your id ids object how many s".split(
    " "
  )
)

/** The words of a name or sentence, in the singular and without case. */
const wordsIn = (text: string): ReadonlyArray<string> =>
  text
    .replaceAll(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== "")
    .map((word) => word.replace(/(?<=..)s$/, ""))

/** Whether a description only repeats the field's name. */
const repeats = (name: string, description: string): boolean => {
  const known = new Set(wordsIn(name))
  return wordsIn(description).every((word) => known.has(word) || empty.has(word) || empty.has(`${word}s`))
}

const saidOf = (schema: unknown): ReadonlyArray<readonly [name: string, description: string]> => {
  if (Array.isArray(schema)) return schema.flatMap(saidOf)
  if (!Predicate.isRecord(schema)) return []
  const own = Object.entries(recordIn(schema, "properties")).map(
    ([name, field]) => [name, String(recordIn(field)["description"])] as const
  )
  return [...own, ...Object.values(schema).flatMap(saidOf)]
}

describe("the OpenAPI document, for those who generate from it,", () => {
  it("passes Redocly's recommended rules without a warning", async () => {
    const config = await createConfig({ extends: ["recommended"] })
    const problems = await lintFromString({ source, absoluteRef: fileURLToPath(import.meta.url), config })
    expect(problems.map(({ location, message, ruleId }) => [ruleId, message, location[0]?.pointer])).toEqual([])
    const broken = await lintFromString({
      source: JSON.stringify(withoutServers),
      absoluteRef: fileURLToPath(import.meta.url),
      config
    })
    expect(broken.map(({ ruleId }) => ruleId)).toContain("no-empty-servers")
  })

  it("passes Spectral's recommended rules without a warning", async () => {
    const linter = new spectral.Spectral()
    linter.setRuleset(new spectral.Ruleset(rulesets.oas, { severity: "recommended" }))
    const problems = await linter.run(document)
    expect(problems.map(({ code, message, path }) => [code, message, path.join("/")])).toEqual([])
    expect((await linter.run(withoutServers)).map(({ code }) => code)).toContain("oas3-api-servers")
  }, 240_000)

  it("has an operation id of group and verb for each operation", () => {
    for (const operation of operations) {
      const { group, name } = operation
      const described = describedIn(document, operation)
      expect(described["operationId"]).toBe(`${group}.${name}`)
      expect(described["operationId"]).toMatch(/^[a-z][A-Za-z]*\.[a-z][A-Za-z]*$/)
    }
  })

  it("describes every field and every parameter", () => {
    const bare = parameters.filter(({ description }) => !Predicate.isString(description)).map(({ name }) => name)
    const fields = Object.entries(schemas).flatMap(([name, schema]) => bareFields(schema, name))
    expect([...bare, ...fields], "without a description").toEqual([])
  })

  it("says something of each field and parameter beyond its name", () => {
    const said = parameters.map(({ description, name }) => [String(name), String(description)] as const)
    const all = [...said, ...Object.values(schemas).flatMap(saidOf)]
    expect(all.length).toBeGreaterThan(500)
    expect(all.filter(([name, description]) => repeats(name, description))).toEqual([])
    expect(repeats("lookup_keys", "Its lookup keys")).toBe(true)
    expect(repeats("endpointId", "The endpoint's id")).toBe(true)
    expect(repeats("amount", "The amount in the smallest unit")).toBe(false)
  })

  it("names every JSON body and answer, and none of them with a number or in the library's words", () => {
    for (const operation of operations) {
      const { group, name } = operation
      const described = describedIn(document, operation)
      const answers = Object.entries(recordIn(described, "responses")).filter(([status]) => Number(status) < 300)
      for (const holder of [described["requestBody"], ...answers.map(([, answer]) => answer)]) {
        const { schema } = recordIn(holder, "content", "application/json")
        if (schema !== undefined) {
          expect(recordIn(schema)["$ref"], `${group}.${name}`).toMatch(/^#\/components\/schemas\//)
        }
      }
    }
    for (const name of Object.keys(schemas)) {
      expect(name).toMatch(/^[A-Z][A-Za-z_.]*[A-Za-z]$/)
      expect(["Int", "Finite", "Date", "DateFromString", "UUID", "Struct"]).not.toContain(name)
    }
  })

  it("has no nullable object or enumeration without a name in its components", () => {
    const text = JSON.stringify(schemas)
    expect(text).not.toMatch(/"type":\["object","null"\]/)
    expect(text).not.toMatch(/"anyOf":\[\{"type":"object","(?:required|properties)/)
  })
})
