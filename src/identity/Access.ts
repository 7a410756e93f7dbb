import type { HttpMethod } from "@effect/platform"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import { Effect } from "effect"
import {
  EndpointManagementForbidden,
  OrganizationAccessDenied,
  OriginNotTrusted,
  PermissionDenied,
  ValidationFailed,
  WorkspaceAccessRequired
} from "../platform/errors/Errors.ts"
import type { Environment } from "../platform/kit/Environment.ts"
import { workspaceHeader } from "./Authentication.ts"
import {
  entrusted,
  isWebhookPermission,
  PaymentPermission,
  type Permission,
  WebhookPermission
} from "./keys/Permissions.ts"
import type { PrincipalShape, Role, Session } from "./Principal.ts"

/** What a signed-in person may do: the rules of roles, workspaces and origins (contract 2.7, 2.8). */

const working: ReadonlySet<Permission> = new Set([...PaymentPermission.literals, ...WebhookPermission.literals])

const byRole: Readonly<Record<Role, ReadonlySet<Permission>>> = {
  owner: new Set([...working, ...entrusted]),
  admin: new Set([...working, ...entrusted]),
  developer: working,
  viewer: new Set([...working].filter((permission) => permission.endsWith(":read")))
}

/**
 * The permissions of a role, in the workspaces that the person has access to. Only owners and admins read the audit
 * log and customers' personal data.
 */
export const permissionsOf = (role: Role): ReadonlySet<Permission> => byRole[role]

/** The caller of a session: in the person's organization, in the environment of the selected workspace. */
export const principalOf = (
  session: Session
): Effect.Effect<PrincipalShape, OrganizationAccessDenied | WorkspaceAccessRequired> => {
  const { environment, membership, personId } = session
  if (membership === null) {
    return new OrganizationAccessDenied({ message: "This person has no organization yet." })
  }
  return Effect.succeed({
    organizationId: membership.organizationId,
    environment,
    permissions: permissionsOf(membership.role),
    author: { kind: "person", id: personId },
    role: membership.role
  })
}

/** Developers and viewers act only in the workspaces granted to them. */
export const requireWorkspace = (session: Session): Effect.Effect<void, WorkspaceAccessRequired> =>
  session.membership?.environments.includes(session.environment) === true ? Effect.void : new WorkspaceAccessRequired()

/** Methods that change nothing: other sites may cause such requests, but learn nothing from them. */
const safeMethods: ReadonlySet<HttpMethod.HttpMethod> = new Set(["GET", "HEAD", "OPTIONS"])

/** Requires a trusted `Origin` for changes, since browsers send a cookie with requests that other sites cause. */
export const requireTrustedOrigin = (
  trustedOrigins: ReadonlySet<string>
): Effect.Effect<void, OriginNotTrusted, HttpServerRequest.HttpServerRequest> =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
    safeMethods.has(request.method) || trustedOrigins.has(request.headers["origin"] ?? "")
      ? Effect.void
      : new OriginNotTrusted()
  )

export const requirePermission = (
  principal: PrincipalShape,
  permission: Permission
): Effect.Effect<void, EndpointManagementForbidden | PermissionDenied> => {
  if (principal.permissions.has(permission)) {
    return Effect.void
  }
  const caller = principal.role === undefined ? "This API key" : `The role ${principal.role}`
  return isWebhookPermission(permission)
    ? new EndpointManagementForbidden({ message: `${caller} lacks the webhook management scope ${permission}.` })
    : new PermissionDenied({ message: `${caller} lacks the permission ${permission}.` })
}

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
