import { Effect, Layer, Schema } from "effect"
import { type Member, Members } from "../../../identity/members/Members.ts"
import { Organizations } from "../../../identity/organizations/Organizations.ts"
import { MemberRole } from "../../../identity/Schemas.ts"
import { environments } from "../../../platform/kit/Environment.ts"
import type { OrganizationId } from "../../../platform/kit/Ids.ts"
import { type Command, choice, command, flag, form } from "../Command.ts"
import { CommandFailed } from "../Failure.ts"
import { emailOption, exampleOrganization, organizationOption, requireOrganization } from "../Fields.ts"
import { database, operator } from "../Installation.ts"
import { table, time } from "../Output.ts"

/** `members list | add | set-role | remove`: people and their roles (contract 2.7, 2.8). */

const services = Layer.provide(Layer.merge(Members.layer, Organizations.layer), database)

const memberOptions = { organization: organizationOption, email: emailOption("The member's e-mail address.") }

const roleOption = choice(
  MemberRole.literals,
  "Owners and admins have access to both environments; developers and viewers to those granted to them."
)

const environmentsOption = form(
  Schema.Array(Schema.Literal(...environments)),
  `<${environments.join("|")}>`,
  "An environment that a developer or viewer gets access to; once per environment.",
  `must be ${environments.join(" or ")}`
).pipe(Schema.optionalWith({ exact: true, default: () => [] }))

const keepKeysOption = flag(
  "Keep the API keys that the member created; otherwise those that they could no longer give are revoked."
)

const exampleMember = `--organization ${exampleOrganization} --email dev@acme.example`

const memberRow = ({ email, environments, joinedAt, personId, role }: Member) => [
  email,
  role,
  environments.join(","),
  time(joinedAt),
  personId
]

const membersTable = (members: ReadonlyArray<Member>) =>
  table(["E-MAIL", "ROLE", "ENVIRONMENTS", "JOINED", "ID"], members.map(memberRow), "There are no members.")

const findMember = Effect.fnUntraced(function* (organizationId: OrganizationId, email: string) {
  const members = yield* Members
  yield* requireOrganization(organizationId)
  const found = (yield* members.list(organizationId)).find((member) => member.email === email)
  return found ?? (yield* new CommandFailed({ message: `${email} is not a member of organization ${organizationId}.` }))
})

export const memberCommands: ReadonlyArray<Command> = [
  command({
    name: "members list",
    summary: "List the members of an organization.",
    example: `--organization ${exampleOrganization}`,
    input: Schema.Struct({ organization: organizationOption }),
    services,
    run: Effect.fnUntraced(function* ({ organization }) {
      const members = yield* Members
      yield* requireOrganization(organization)
      const found = yield* members.list(organization)
      return { json: found, text: membersTable(found) }
    })
  }),
  command({
    name: "members add",
    summary: "Add a person without an invitation; no mail is sent, they sign in with their address.",
    example: `${exampleMember} --role developer --environment sandbox`,
    input: Schema.Struct({ ...memberOptions, role: roleOption, environment: environmentsOption }),
    services,
    run: Effect.fnUntraced(function* ({ email, environment, organization, role }) {
      const members = yield* Members
      yield* requireOrganization(organization)
      const added = yield* members.add({
        organizationId: organization,
        email,
        role,
        environments: environment,
        author: yield* operator
      })
      return { json: added, text: membersTable([added]) }
    })
  }),
  command({
    name: "members set-role",
    summary: "Change a member's role, and the environments granted to them if any are given.",
    example: `${exampleMember} --role viewer --environment sandbox --environment production`,
    input: Schema.Struct({
      ...memberOptions,
      role: roleOption,
      environment: environmentsOption,
      keepKeys: keepKeysOption
    }),
    services,
    run: Effect.fnUntraced(function* ({ email, environment, keepKeys, organization, role }) {
      const members = yield* Members
      const { personId } = yield* findMember(organization, email)
      const changed = yield* members.update({
        organizationId: organization,
        personId,
        // Without environments, those granted are unchanged
        change: environment.length === 0 ? { role } : { role, environments: environment },
        keepKeys,
        author: yield* operator
      })
      return { json: changed, text: membersTable([changed]) }
    })
  }),
  command({
    name: "members remove",
    summary: "Remove a member: their sessions lose the organization; their open invitations and keys are revoked.",
    example: exampleMember,
    input: Schema.Struct({ ...memberOptions, keepKeys: keepKeysOption }),
    services,
    run: Effect.fnUntraced(function* ({ email, keepKeys, organization }) {
      const members = yield* Members
      const { personId } = yield* findMember(organization, email)
      yield* members.remove({ organizationId: organization, personId, keepKeys, author: yield* operator })
      return {
        json: { organizationId: organization, personId, email, removed: true },
        text: `${email} is no longer a member of organization ${organization}.`
      }
    })
  })
]
