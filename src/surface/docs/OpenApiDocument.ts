import { readdirSync, readFileSync } from "node:fs"
import { OpenApi } from "@effect/platform"
import { Predicate } from "effect"
import { documentedErrors, type ErrorBody, errorBody } from "../../platform/errors/Errors.ts"
import { packageRoot } from "../../platform/settings/PackageFolders.ts"
import { Api, operations } from "../contract/Api.ts"
import { describedIn, recordIn } from "../contract/Document.ts"

/**
 * The OpenAPI document as it is published: the contract's, with an example for each request and answer, and for each
 * error. They are added here and not in the contract, so that programs that import the contract don't load them.
 */

/**
 * The examples of the OpenAPI document: requests and answers of a run of the service, which `npm run docs:examples`
 * records with a test that calls every operation. The same test checks that they match a current run.
 */

export interface Example {
  /** Its path and query parameters, by name. */
  readonly parameters?: Readonly<Record<string, string | number | boolean | ReadonlyArray<string>>>
  /** Its JSON body, or its form's fields. */
  readonly request?: unknown
  /** The JSON that it answered, or the text of a stream. */
  readonly answer?: unknown
}

/** The name of the file with the answers of refused requests, beside one for each group of operations. */
const refusalsFile = "errors.json"

/** The folder of the recorded exchanges; the compiled package has them where the sources have them. */
export const examplesFolder = new URL("src/docs/examples/", packageRoot)

const read = (file: string): unknown => JSON.parse(readFileSync(new URL(file, examplesFolder), "utf8"))

/** Reads the recorded examples, by group and operation. Fails if the folder isn't where the package has it. */
const readExamples = (): Readonly<Record<string, Readonly<Record<string, Example>>>> =>
  Object.fromEntries(
    readdirSync(examplesFolder)
      .filter((file) => file.endsWith(".json") && file !== refusalsFile)
      // Written by the recording test, which checks that they match its run
      .map((file) => [file.slice(0, -".json".length), read(file) as Readonly<Record<string, Example>>])
  )

export const exampleRequestId = "req_0199c0de0000700080000000000000ff"

/**
 * An answer for each documented error, by the error's tag: as recorded, or, if no run can cause it at will (a timeout,
 * an outage), as the service would write it.
 */
const readRefusals = (): ReadonlyMap<string, ErrorBody> => {
  // As above
  const recorded = read(refusalsFile) as Readonly<Record<string, ErrorBody>>
  return new Map(
    documentedErrors.map((errorClass) => {
      const { code } = errorClass.documentation
      const written = new errorClass({ code: code.replace(/<.*>/, "card_declined") })
      return [errorClass.tag, recorded[errorClass.tag] ?? errorBody(written, exampleRequestId)] as const
    })
  )
}

/** An idempotency key per operation, so that no example reuses another's. */
export const exampleIdempotencyKey = (group: string, name: string): string => `try-${group}-${name}-1`

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
