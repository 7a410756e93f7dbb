/**
 * Every error code of the API, each a tagged error (contract 12.5).
 *
 * Each is sent as exactly `{error, code, fields, requestId}`. An error is raised where its condition is known and
 * becomes a response in one place, `surface/http/Answers.ts`. Messages are written for integrators and never carry a
 * secret, a key, a payer's URL, SQL or a stack; details for operators stay in `cause`, which is never sent.
 *
 * A class carries all facts about its error: status, code, message, why it is raised and what to do. To add one, define
 * it in one of the modules below.
 */

import * as access from "./Access.ts"
import type { DocumentedErrorClass } from "./DocumentedError.ts"
import * as provider from "./Provider.ts"
import * as requests from "./Requests.ts"
import * as resources from "./Resources.ts"
import * as service from "./Service.ts"

export * from "./Access.ts"
export * from "./DocumentedError.ts"
export * from "./Provider.ts"
export { ProviderAnswer } from "./ProviderAnswer.ts"
export * from "./Requests.ts"
export * from "./Resources.ts"
export * from "./Service.ts"

const isDocumented = (exported: unknown): exported is DocumentedErrorClass =>
  typeof exported === "function" && "documentation" in exported

/** The source of the error reference and of the tests of every code. */
export const documentedErrors: ReadonlyArray<DocumentedErrorClass> = Object.values<unknown>({
  ...access,
  ...provider,
  ...requests,
  ...resources,
  ...service
})
  .filter(isDocumented)
  .toSorted(({ documentation: a }, { documentation: b }) => a.status - b.status || (a.code < b.code ? -1 : 1))
