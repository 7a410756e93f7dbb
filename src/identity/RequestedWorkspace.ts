import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import { Effect } from "effect"
import { ValidationFailed } from "../platform/errors/Errors.ts"
import type { Environment } from "../platform/kit/Environment.ts"
import { workspaceHeader } from "./Authentication.ts"
import type { Session } from "./Principal.ts"

/**
 * The workspace named by a single request (contract 2.8): a person may work in both at once, in separate tabs, while a
 * session has only one selected workspace.
 */

const refused = (message: string) =>
  new ValidationFailed({ message: `\`${workspaceHeader}\` ${message}`, fields: [workspaceHeader] })

/** The environment that the request names; undefined if it names none. Fails if the header is invalid or sent twice. */
export const requestedEnvironment: Effect.Effect<
  Environment | undefined,
  ValidationFailed,
  HttpServerRequest.HttpServerRequest
> = Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) => {
  const named = headers[workspaceHeader]
  return named === undefined || named === "sandbox" || named === "production"
    ? Effect.succeed(named)
    : refused("in the headers must be sandbox or production, once.")
})

/**
 * The session in the workspace that the request names, for this request alone; without the header, in the selected one.
 * Does not check access: see `requireWorkspace`.
 */
export const inRequestedWorkspace = (
  session: Session
): Effect.Effect<Session, ValidationFailed, HttpServerRequest.HttpServerRequest> =>
  Effect.map(requestedEnvironment, (environment) => (environment === undefined ? session : { ...session, environment }))

/** If the request names an environment, requires it to be the key's. */
export const requireWorkspaceOfKey = ({
  environment
}: {
  readonly environment: Environment
}): Effect.Effect<void, ValidationFailed, HttpServerRequest.HttpServerRequest> =>
  Effect.flatMap(requestedEnvironment, (named) =>
    named === undefined || named === environment
      ? Effect.void
      : refused(`in the headers must be ${environment}, the environment of the API key; leave it out.`)
  )
