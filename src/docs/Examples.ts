import { readdirSync, readFileSync } from "node:fs"
import { documentedErrors, type ErrorBody, errorBody } from "../errors/Errors.ts"
import { packageRoot } from "../settings/PackageFolders.ts"

/**
 * The examples of the OpenAPI document: requests and answers of a run of the service, which `npm run docs:examples`
 * records with a test that calls every operation. The same test checks that they match a current run.
 */

/** One exchange with an operation. */
export interface Example {
  /** Its path and query parameters, by name. */
  readonly parameters?: Readonly<Record<string, string | number | boolean | ReadonlyArray<string>>>
  /** Its JSON body, or its form's fields. */
  readonly request?: unknown
  /** The JSON that it answered, or the text of a stream. */
  readonly answer?: unknown
}

/** The name of the file with the answers of refused requests, beside one for each group of operations. */
export const refusalsFile = "errors.json"

/** The folder of the recorded exchanges; the compiled package has them where the sources have them. */
export const examplesFolder = new URL("src/docs/examples/", packageRoot)

const read = (file: string): unknown => JSON.parse(readFileSync(new URL(file, examplesFolder), "utf8"))

/** Reads the recorded examples, by group and operation. Fails if the folder isn't where the package has it. */
export const readExamples = (): Readonly<Record<string, Readonly<Record<string, Example>>>> =>
  Object.fromEntries(
    readdirSync(examplesFolder)
      .filter((file) => file.endsWith(".json") && file !== refusalsFile)
      // Written by the recording test, which checks that they match its run
      .map((file) => [file.slice(0, -".json".length), read(file) as Readonly<Record<string, Example>>])
  )

/** The id of the request in the examples of refusals. */
export const exampleRequestId = "req_0199c0de0000700080000000000000ff"

/**
 * An answer for each documented error, by the error's tag: as recorded, or, if no run can cause it at will (a time-out,
 * an outage), as the service would write it.
 */
export const readRefusals = (): ReadonlyMap<string, ErrorBody> => {
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
