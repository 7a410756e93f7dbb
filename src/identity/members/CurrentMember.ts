import { Effect } from "effect"
import type { OrganizationAccessDenied } from "../../platform/errors/Errors.ts"
import { CurrentSession } from "../Authentication.ts"
import { principalOf, requireWorkspace } from "../AuthenticationLive.ts"
import type { PrincipalShape } from "../Principal.ts"

/** For operations on the organization as a whole: no workspace is required. */
export const currentMember: Effect.Effect<PrincipalShape, OrganizationAccessDenied, CurrentSession> = Effect.flatMap(
  CurrentSession,
  (session) =>
    // `requireWorkspace` checks workspaces; here this failure is declared but never raised
    Effect.catchTag(principalOf(session), "WorkspaceAccessRequired", Effect.die)
)

/** The signed-in person in the selected workspace. */
export const memberInWorkspace = Effect.zipLeft(currentMember, Effect.flatMap(CurrentSession, requireWorkspace))
