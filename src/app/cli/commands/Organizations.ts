import { Effect, Layer, Option, Schema } from "effect"
import { Members } from "../../../identity/members/Members.ts"
import { maxOrganizationName, OrganizationName } from "../../../identity/organizations/OrganizationName.ts"
import { Organizations } from "../../../identity/organizations/Organizations.ts"
import { Accounts } from "../../../payments/Accounts.ts"
import { OrganizationId } from "../../../platform/kit/Ids.ts"
import { type Command, command, form } from "../Command.ts"
import { emailOption, exampleOrganization, idArgument, requireOrganization } from "../Fields.ts"
import { database, noProvider, operator } from "../Installation.ts"
import { fields, table } from "../Output.ts"
import { accountLine } from "./Accounts.ts"

/** `organizations create | list | show | rename | close`: the tenants, for the operator (contract 1.1). */

const services = Layer.mergeAll(Organizations.layer, Members.layer, Layer.provide(Accounts.layer, noProvider)).pipe(
  Layer.provide(database)
)

const nameOption = form(
  OrganizationName,
  `<text of 1 to ${maxOrganizationName} characters>`,
  "The name that members see.",
  `must have 1 to ${maxOrganizationName} characters, all visible, and no link or mail address: it appears in mails to people who are invited`
)

export const organizationCommands: ReadonlyArray<Command> = [
  command({
    name: "organizations create",
    summary: "Create an organization with both of its workspaces and its owner.",
    example: "--name 'Acme Ltd' --owner-email ana@acme.example",
    input: Schema.Struct({
      name: nameOption,
      ownerEmail: emailOption("The e-mail address that the owner signs in with.")
    }),
    services,
    run: Effect.fnUntraced(function* ({ name, ownerEmail }) {
      const organizations = yield* Organizations
      const { id } = yield* organizations.create({ name, ownerEmail, author: yield* operator })
      return {
        json: { id, name, ownerEmail },
        text: `Organization ${id} was created: "${name}", owned by ${ownerEmail}.`
      }
    })
  }),
  command({
    name: "organizations list",
    summary: "List all organizations, oldest first.",
    example: "--json",
    input: Schema.Struct({}),
    services,
    run: () =>
      Effect.map(
        Effect.flatMap(Organizations, ({ list }) => list),
        (organizations) => ({
          json: organizations,
          text: table(
            ["ID", "NAME"],
            organizations.map(({ id, name }) => [id, name]),
            "There are no organizations."
          )
        })
      )
  }),
  command({
    name: "organizations show",
    summary: "Show an organization, its owners and its provider accounts.",
    example: exampleOrganization,
    argument: "id",
    input: Schema.Struct({ id: idArgument(OrganizationId, "The organization's id.") }),
    services,
    run: Effect.fnUntraced(function* ({ id }) {
      const [organizations, members, accounts] = yield* Effect.all([Organizations, Members, Accounts])
      yield* requireOrganization(id)
      const { name } = yield* organizations.get(id)
      const owners = (yield* members.list(id)).filter(({ role }) => role === "owner").map(({ email }) => email)
      const sandbox = yield* accounts.show({ organizationId: id, environment: "sandbox" })
      const production = yield* accounts.show({ organizationId: id, environment: "production" })
      return {
        json: {
          id,
          name,
          owners,
          accounts: { sandbox: Option.getOrNull(sandbox), production: Option.getOrNull(production) }
        },
        text: fields([
          ["ID", id],
          ["Name", name],
          ["Owners", owners.join(", ")],
          ["Sandbox account", accountLine(sandbox)],
          ["Production account", accountLine(production)]
        ])
      }
    })
  }),
  command({
    name: "organizations rename",
    summary: "Rename an organization.",
    example: `--name 'Acme Coffee' ${exampleOrganization}`,
    argument: "id",
    input: Schema.Struct({ name: nameOption, id: idArgument(OrganizationId, "The organization's id.") }),
    services,
    run: Effect.fnUntraced(function* ({ id, name }) {
      const organizations = yield* Organizations
      yield* requireOrganization(id)
      yield* organizations.rename({ id, name, author: yield* operator })
      return { json: { id, name }, text: `Organization ${id} is called "${name}" now.` }
    })
  }),
  command({
    name: "organizations close",
    summary: "Close an empty organization: its keys and invitations are revoked, its records stay.",
    example: exampleOrganization,
    argument: "id",
    input: Schema.Struct({ id: idArgument(OrganizationId, "The organization's id.") }),
    services,
    run: Effect.fnUntraced(function* ({ id }) {
      const organizations = yield* Organizations
      yield* requireOrganization(id)
      yield* organizations.close(id, yield* operator)
      return { json: { id, closed: true }, text: `Organization ${id} is closed.` }
    })
  })
]
