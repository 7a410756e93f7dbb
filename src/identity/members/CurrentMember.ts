import { Effect } from "effect"
import type { OrganizationAccessDenied } from "../../errors/Errors.ts"
import { principalOf } from "../Access.ts"
import { CurrentSession } from "../Authentication.ts"
import type { PrincipalShape } from "../Principal.ts"

/**
 * The signed-in person in their organization, for what concerns the organization as a whole: no workspace is asked for.
 * Fails for a person without one.
 */
export const currentMember: Effect.Effect<PrincipalShape, OrganizationAccessDenied, CurrentSession> = Effect.flatMap(
  CurrentSession,
  (session) =>
    // Workspaces are `requireWorkspace`'s to judge; this failure is declared there but never made
    Effect.catchTag(principalOf(session), "WorkspaceAccessRequired", Effect.die)
)
