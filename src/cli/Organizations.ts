import { Command } from "@effect/cli"
import { Effect, Layer, Option } from "effect"
import { Members } from "../identity/Members.ts"
import { Organizations } from "../identity/Organizations.ts"
import { OrganizationId } from "../kit/Ids.ts"
import { Accounts } from "../provider/Accounts.ts"
import { environments } from "../Settings.ts"
import { accountJson, accountLine } from "./Accounts.ts"
import { type Example, exampleOrganization } from "./Examples.ts"
import { CommandFailed } from "./Failure.ts"
import { emailOption, idArgument, textOption } from "./Fields.ts"
import { database, Installation, noProvider } from "./Installation.ts"
import { operator } from "./Operator.ts"
import { fields, jsonOption, show, table } from "./Output.ts"

/** `organizations create | list | show`: the tenants, seen by the operator (contract, What the service does). */

const services = Layer.mergeAll(
  Organizations.layer,
  Members.layer,
  Layer.provide(Accounts.layer, noProvider)
).pipe(Layer.provide(database), Layer.provide(Installation.layer))

const create = Command.make(
  "create",
  { name: textOption("name", 200), ownerEmail: emailOption("owner-email"), json: jsonOption },
  ({ json, name, ownerEmail }) =>
    Effect.gen(function* () {
      const organizations = yield* Organizations
      const { id } = yield* organizations.create({ name, ownerEmail, author: yield* operator })
      yield* show(json, {
        json: { id, name, ownerEmail },
        text: `Organization ${id} is made: "${name}", owned by ${ownerEmail}.`
      })
    })
).pipe(
  Command.withDescription("Make an organization with both of its workspaces and its owner."),
  Command.provide(services)
)

const list = Command.make("list", { json: jsonOption }, ({ json }) =>
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
).pipe(Command.withDescription("List all organizations, the oldest first."), Command.provide(services))

const showOne = Command.make(
  "show",
  { id: idArgument(OrganizationId, "The organization's id."), json: jsonOption },
  ({ id, json }) =>
    Effect.gen(function* () {
      const [organizations, members, accounts] = yield* Effect.all([Organizations, Members, Accounts])
      const { name } = yield* organizations
        .get(id)
        .pipe(
          Effect.catchTag("ResourceNotFound", () => new CommandFailed({ message: `There is no organization ${id}.` }))
        )
      const owners = (yield* members.list(id)).filter(({ role }) => role === "owner").map(({ email }) => email)
      const [sandbox, production] = yield* Effect.all(
        [accounts.show({ organizationId: id, environment: "sandbox" }), accounts.show({ organizationId: id, environment: "production" })]
      )
      const json_ = (account: typeof sandbox) => Option.getOrNull(Option.map(account, accountJson))
      yield* show(json, {
        json: { id, name, owners, accounts: { sandbox: json_(sandbox), production: json_(production) } },
        text: fields([
          ["ID", id],
          ["Name", name],
          ["Owners", owners.join(", ")],
          ["Sandbox account", accountLine(sandbox)],
          ["Production account", accountLine(production)]
        ])
      })
    })
).pipe(
  Command.withDescription("Show an organization, its owners and its provider accounts."),
  Command.provide(services)
)

/** The command and its verbs. */
export const organizations = Command.make("organizations").pipe(
  Command.withDescription("Make and show organizations."),
  Command.withSubcommands([create, list, showOne])
)

export const organizationExamples: ReadonlyArray<Example> = [
  { command: "organizations create", line: "--name 'Acme Ltd' --owner-email ana@acme.example" },
  { command: "organizations list", line: "--json" },
  { command: "organizations show", line: exampleOrganization }
]
