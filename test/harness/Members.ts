import { Context, Effect } from "effect"
import { Members } from "../../src/identity/members/Members.ts"
import type { Role } from "../../src/identity/Principal.ts"
import type { OrganizationId } from "../../src/platform/kit/Ids.ts"
import { newEmail } from "./SignIn.ts"
import { TestService } from "./TestService.ts"

/** Gives an organization a member of every role and no other; their addresses. */
export const membersOf = Effect.fnUntraced(function* (tenant: { readonly id: OrganizationId }) {
  const { services, sql } = yield* TestService
  yield* sql`DELETE FROM payments.memberships WHERE organization_id = ${tenant.id}`
  const member = Effect.fnUntraced(function* (role: Role) {
    const email = newEmail()
    yield* Context.get(services, Members).add({
      organizationId: tenant.id,
      email,
      role,
      environments: role === "developer" || role === "viewer" ? ["sandbox"] : [],
      author: { kind: "operator", id: "test" }
    })
    return email
  })
  return {
    owner: yield* member("owner"),
    admin: yield* member("admin"),
    developer: yield* member("developer"),
    viewer: yield* member("viewer")
  }
})
