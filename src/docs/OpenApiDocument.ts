import { OpenApi } from "@effect/platform"
import { Predicate } from "effect"
import { Api, operations } from "../contract/Api.ts"
import { describedIn, recordIn } from "../contract/Document.ts"
import { type Example, exampleIdempotencyKey, readExamples, readRefusals } from "./Examples.ts"

/**
 * The OpenAPI document as it is published: the contract's, with an example for each request and answer, and for each
 * error. They are added here and not in the contract, so that programs that import the contract don't load them.
 */

type Json = Record<string, unknown>

/** The media type object of an answer or a body: the only one, or the first of several with the same content. */
const contentOf = (holder: unknown): Json => recordIn(Object.values(recordIn(holder, "content"))[0])

const addParameters = (described: Json, { parameters = {} }: Example, idempotencyKey: string): void => {
  const listed: unknown = described["parameters"]
  for (const parameter of Array.isArray(listed) ? listed.filter(Predicate.isRecord) : []) {
    const name = String(parameter["name"])
    const value = name === "idempotency-key" ? idempotencyKey : parameters[name]
    if (value !== undefined) parameter["example"] = value
  }
}

/**
 * Builds the document, which takes a few tenths of a second. Fails if a file of examples isn't where the package has
 * it.
 */
export const openApiDocument = (): Json => {
  const document: Json = JSON.parse(JSON.stringify(OpenApi.fromApi(Api)))
  const examples = readExamples()
  const schemas = recordIn(document, "components", "schemas")
  // In the errors' own schemas, since a hundred operations refer to each
  for (const [tag, refusal] of readRefusals()) {
    if (schemas[tag] !== undefined) recordIn(schemas, tag)["examples"] = [refusal]
  }
  for (const operation of operations) {
    const { group, name } = operation
    const described = describedIn(document, operation)
    const example = examples[group]?.[name] ?? {}
    addParameters(described, example, exampleIdempotencyKey(group, name))
    if (example.request !== undefined) contentOf(described["requestBody"])["example"] = example.request
    const responses = recordIn(described, "responses")
    const succeeded = Object.entries(responses).find(([status]) => status.startsWith("2"))?.[1]
    if (example.answer !== undefined) contentOf(succeeded)["examples"] = { example: { value: example.answer } }
  }
  return document
}
