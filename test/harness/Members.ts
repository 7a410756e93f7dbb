import { expect } from "@effect/vitest"
import { Context, Effect } from "effect"
import { Members } from "../../src/identity/members/Members.ts"
import type { Role } from "../../src/identity/Principal.ts"
import type { OrganizationId } from "../../src/platform/kit/Ids.ts"
import { TestMailbox } from "./Mailbox.ts"
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

export const mailsTo = (address: string) =>
  Effect.map(TestMailbox, ({ mails }) => mails.filter(({ to }) => to.includes(address)))

/** Expects this many mails to the owner and to the admin, and none to the other members. */
export const expectMails = (people: Effect.Effect.Success<ReturnType<typeof membersOf>>, owner = 0, admin = owner) =>
  Effect.map(
    Effect.all({
      owner: mailsTo(people.owner),
      admin: mailsTo(people.admin),
      developer: mailsTo(people.developer),
      viewer: mailsTo(people.viewer)
    }),
    (mails) => expect(Object.values(mails).map(({ length }) => length)).toEqual([owner, admin, 0, 0])
  )
