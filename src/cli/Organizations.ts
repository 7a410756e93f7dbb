import { Command, Options } from "@effect/cli"
import { Effect, Layer, Option, Schema } from "effect"
import { Members } from "../identity/members/Members.ts"
import { maxOrganizationName, OrganizationName } from "../identity/organizations/OrganizationName.ts"
import { Organizations } from "../identity/organizations/Organizations.ts"
import { OrganizationId } from "../kit/Ids.ts"
import { Accounts } from "../provider/Accounts.ts"
import { accountLine } from "./Accounts.ts"
import { CommandFailed } from "./Failure.ts"
import { emailOption, formOption, idArgument } from "./Fields.ts"
import { database, Installation, noProvider } from "./Installation.ts"
import { operator } from "./Operator.ts"
import { fields, jsonOption, show, table } from "./Output.ts"
import { described, exampleOrganization, type KnownCommand } from "./Synopsis.ts"

/** `organizations create | list | show`: the tenants, for the operator (contract 1.1). */

const services = Layer.mergeAll(Organizations.layer, Members.layer, Layer.provide(Accounts.layer, noProvider)).pipe(
  Layer.provide(database),
  Layer.provide(Installation.layer)
)

const nameOption = formOption(
  "name",
  (text) => Schema.decodeOption(OrganizationName)(text),
  `must have 1 to ${maxOrganizationName} characters, all visible, and no link or mail address: it appears in mails to people who are invited`
).pipe(Options.withPseudoName(`<text of 1 to ${maxOrganizationName} characters>`))

const create = described(
  Command.make(
    "create",
    { name: nameOption, ownerEmail: emailOption("owner-email"), json: jsonOption },
    ({ json, name, ownerEmail }) =>
      Effect.gen(function* () {
        const organizations = yield* Organizations
        const { id } = yield* organizations.create({ name, ownerEmail, author: yield* operator })
        yield* show(json, {
          json: { id, name, ownerEmail },
          text: `Organization ${id} was created: "${name}", owned by ${ownerEmail}.`
        })
      })
  ).pipe(Command.provide(services)),
  {
    command: "organizations create",
    summary: "Create an organization with both of its workspaces and its owner.",
    example: "--name 'Acme Ltd' --owner-email ana@acme.example"
  }
)

const list = described(
  Command.make("list", { json: jsonOption }, ({ json }) =>
    Effect.gen(function* () {
      const organizations = yield* Effect.flatMap(Organizations, ({ list }) => list)
      yield* show(json, {
        json: organizations,
        text: table(
          ["ID", "NAME"],
          organizations.map(({ id, name }) => [id, name]),
          "There are no organizations."
        )
      })
    })
  ).pipe(Command.provide(services)),
  { command: "organizations list", summary: "List all organizations, oldest first.", example: "--json" }
)

const showOne = described(
  Command.make("show", { id: idArgument(OrganizationId, "The organization's id."), json: jsonOption }, ({ id, json }) =>
    Effect.gen(function* () {
      const [organizations, members, accounts] = yield* Effect.all([Organizations, Members, Accounts])
      const { name } = yield* organizations
        .get(id)
        .pipe(
          Effect.catchTag("ResourceNotFound", () => new CommandFailed({ message: `There is no organization ${id}.` }))
        )
      const owners = (yield* members.list(id)).filter(({ role }) => role === "owner").map(({ email }) => email)
      const sandbox = yield* accounts.show({ organizationId: id, environment: "sandbox" })
      const production = yield* accounts.show({ organizationId: id, environment: "production" })
      yield* show(json, {
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
      })
    })
  ).pipe(Command.provide(services)),
  {
    command: "organizations show",
    summary: "Show an organization, its owners and its provider accounts.",
    example: exampleOrganization
  }
)

/** The command with its subcommands. */
export const organizations = Command.make("organizations").pipe(
  Command.withDescription("Create and show organizations."),
  Command.withSubcommands([create.command, list.command, showOne.command])
)

/** The commands, for the help. */
export const organizationCommands: ReadonlyArray<KnownCommand> = [create.known, list.known, showOne.known]
