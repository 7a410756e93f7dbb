import { Command, Options } from "@effect/cli"
import { Effect, Layer } from "effect"
import { environments } from "../events/Environment.ts"
import { type Member, Members } from "../identity/members/Members.ts"
import { Organizations } from "../identity/organizations/Organizations.ts"
import { MemberRole } from "../identity/Schemas.ts"
import type { OrganizationId } from "../kit/Ids.ts"
import { CommandFailed } from "./Failure.ts"
import { emailOption, organizationOption, requireOrganization } from "./Fields.ts"
import { database, Installation } from "./Installation.ts"
import { operator } from "./Operator.ts"
import { jsonOption, show, table, time } from "./Output.ts"
import { described, exampleOrganization, type KnownCommand } from "./Synopsis.ts"

/** `members list | add | set-role | remove`: people and their roles (contract 2.7, 2.8). */

const services = Layer.merge(Members.layer, Organizations.layer).pipe(
  Layer.provide(database),
  Layer.provide(Installation.layer)
)

const roleOption = Options.choice("role", MemberRole.literals).pipe(
  Options.withDescription(
    "Owners and admins have access to both environments; developers and viewers to those granted to them."
  )
)

const environmentsOption = Options.choice("environment", environments).pipe(
  Options.repeated,
  Options.map((granted) => [...new Set(granted)]),
  Options.withDescription("An environment that a developer or viewer gets access to; once per environment.")
)

const keepKeysOption = Options.boolean("keep-keys").pipe(
  Options.withDescription(
    "Keep the API keys that the member created; otherwise those that they could no longer give are revoked."
  )
)

const memberOption = emailOption("email").pipe(Options.withDescription("The member's e-mail address."))

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

const list = described(
  Command.make("list", { organization: organizationOption, json: jsonOption }, ({ json, organization }) =>
    Effect.gen(function* () {
      const members = yield* Members
      yield* requireOrganization(organization)
      const found = yield* members.list(organization)
      yield* show(json, { json: found, text: membersTable(found) })
    })
  ).pipe(Command.provide(services)),
  {
    command: "members list",
    summary: "List the members of an organization.",
    example: `--organization ${exampleOrganization}`
  }
)

const add = described(
  Command.make(
    "add",
    {
      organization: organizationOption,
      email: memberOption,
      role: roleOption,
      environments: environmentsOption,
      json: jsonOption
    },
    ({ email, environments, json, organization, role }) =>
      Effect.gen(function* () {
        const members = yield* Members
        yield* requireOrganization(organization)
        const added = yield* members.add({
          organizationId: organization,
          email,
          role,
          environments,
          author: yield* operator
        })
        yield* show(json, { json: added, text: membersTable([added]) })
      })
  ).pipe(Command.provide(services)),
  {
    command: "members add",
    summary: "Add a person without an invitation; no mail is sent, they sign in with their address.",
    example: `${exampleMember} --role developer --environment sandbox`
  }
)

const setRole = described(
  Command.make(
    "set-role",
    {
      organization: organizationOption,
      email: memberOption,
      role: roleOption,
      environments: environmentsOption,
      keepKeys: keepKeysOption,
      json: jsonOption
    },
    ({ email, environments, json, keepKeys, organization, role }) =>
      Effect.gen(function* () {
        const members = yield* Members
        const { personId } = yield* findMember(organization, email)
        const changed = yield* members.update({
          organizationId: organization,
          personId,
          // Without environments, those granted are unchanged
          change: environments.length === 0 ? { role } : { role, environments },
          keepKeys,
          author: yield* operator
        })
        yield* show(json, { json: changed, text: membersTable([changed]) })
      })
  ).pipe(Command.provide(services)),
  {
    command: "members set-role",
    summary: "Change a member's role, and the environments granted to them if any are given.",
    example: `${exampleMember} --role viewer --environment sandbox --environment production`
  }
)

const remove = described(
  Command.make(
    "remove",
    { organization: organizationOption, email: memberOption, keepKeys: keepKeysOption, json: jsonOption },
    ({ email, json, keepKeys, organization }) =>
      Effect.gen(function* () {
        const members = yield* Members
        const { personId } = yield* findMember(organization, email)
        yield* members.remove({ organizationId: organization, personId, keepKeys, author: yield* operator })
        yield* show(json, {
          json: { organizationId: organization, personId, email, removed: true },
          text: `${email} is no longer a member of organization ${organization}.`
        })
      })
  ).pipe(Command.provide(services)),
  {
    command: "members remove",
    summary: "Remove a member: their sessions lose the organization; their open invitations and keys are revoked.",
    example: exampleMember
  }
)

/** The command with its subcommands. */
export const members = Command.make("members").pipe(
  Command.withDescription("Show and change who belongs to an organization."),
  Command.withSubcommands([list.command, add.command, setRole.command, remove.command])
)

/** The commands, for the help. */
export const memberCommands: ReadonlyArray<KnownCommand> = [list.known, add.known, setRole.known, remove.known]
