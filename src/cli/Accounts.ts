import { Command, Options } from "@effect/cli"
import { Effect, Layer, Option, Schema } from "effect"
import { Organizations } from "../identity/organizations/Organizations.ts"
import type { Tenant } from "../kit/Tenant.ts"
import { Accounts, type LinkedAccount } from "../provider/Accounts.ts"
import { CommandFailed } from "./Failure.ts"
import { environmentOption, formOption, organizationOption, requireOrganization } from "./Fields.ts"
import { database, Installation, noProvider, provider } from "./Installation.ts"
import { operator } from "./Operator.ts"
import { fields, jsonOption, show, time } from "./Output.ts"
import { described, exampleOrganization, type KnownCommand } from "./Synopsis.ts"

/**
 * `accounts link | unlink | show`: the provider account of an organization and environment (contract 1.5). Only a link
 * created here connects a disconnected account again.
 */

const services = Layer.mergeAll(Organizations.layer, Layer.provide(Accounts.layer, noProvider)).pipe(
  Layer.provide(database),
  Layer.provide(Installation.layer)
)

const servicesWithProvider = Layer.mergeAll(Organizations.layer, Layer.provide(Accounts.layer, provider)).pipe(
  Layer.provide(database),
  Layer.provide(Installation.layer)
)

const accountOption = formOption(
  "account",
  Schema.decodeOption(Schema.String.pipe(Schema.pattern(/^acct_\w{1,64}$/))),
  "must be the id of a provider account (acct_…)"
).pipe(Options.withPseudoName("<acct_…>"), Options.withDescription("The connected account's id at the provider."))

const tenantOptions = { organization: organizationOption, environment: environmentOption, json: jsonOption }

const exampleTenant = `--organization ${exampleOrganization} --environment sandbox`

/** The account in one line; `-` if none is linked. */
export const accountLine = (account: Option.Option<LinkedAccount>): string =>
  Option.match(account, { onNone: () => "-", onSome: ({ accountId, status }) => `${accountId} (${status})` })

const accountJson = (tenant: Tenant, account: LinkedAccount) => ({ ...tenant, ...account })

const accountText = ({ environment, organizationId }: Tenant, account: LinkedAccount) =>
  fields([
    ["Account", account.accountId],
    ["Organization", organizationId],
    ["Environment", environment],
    ["Status", account.status],
    ["Had payments before", account.hadPaymentsBefore ? "yes" : "no"],
    ["Linked at", time(account.linkedAt)],
    ["Disconnected at", time(account.disconnectedAt)]
  ])

const noAccount = ({ environment, organizationId }: Tenant) =>
  new CommandFailed({ message: `Organization ${organizationId} has no account linked in ${environment}.` })

const link = described(
  Command.make("link", { ...tenantOptions, account: accountOption }, ({ account, environment, json, organization }) =>
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const tenant = { organizationId: organization, environment }
      yield* requireOrganization(organization)
      const linked = yield* accounts.link(tenant, account, yield* operator).pipe(
        Effect.catchTag(
          "AccountAccessRevoked",
          (cause) =>
            new CommandFailed({
              message: `The provider knows no account ${account} that this platform has access to in ${environment}. Nothing was changed.`,
              cause
            })
        )
      )
      yield* show(json, { json: accountJson(tenant, linked), text: accountText(tenant, linked) })
    })
  ).pipe(Command.provide(servicesWithProvider)),
  {
    command: "accounts link",
    summary:
      "Link a provider account, after reading it from the provider. Only this connects a disconnected one again.",
    example: `${exampleTenant} --account acct_1AbCdEfGhIjKlMnO`
  }
)

const unlink = described(
  Command.make("unlink", tenantOptions, ({ environment, json, organization }) =>
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const tenant = { organizationId: organization, environment }
      yield* requireOrganization(organization)
      const unlinked = yield* accounts.unlink(tenant, yield* operator)
      if (Option.isNone(unlinked)) {
        return yield* noAccount(tenant)
      }
      yield* show(json, {
        json: { ...tenant, accountId: unlinked.value.accountId, unlinked: true },
        text: `${unlinked.value.accountId} is no longer linked to organization ${organization} in ${environment}.`
      })
    })
  ).pipe(Command.provide(services)),
  {
    command: "accounts unlink",
    summary:
      "Forget the linked account. Nothing changes at the provider; the account's events are no longer delivered.",
    example: exampleTenant
  }
)

const showOne = described(
  Command.make("show", tenantOptions, ({ environment, json, organization }) =>
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const tenant = { organizationId: organization, environment }
      yield* requireOrganization(organization)
      const known = yield* accounts.show(tenant)
      if (Option.isNone(known)) {
        return yield* noAccount(tenant)
      }
      yield* show(json, { json: accountJson(tenant, known.value), text: accountText(tenant, known.value) })
    })
  ).pipe(Command.provide(services)),
  { command: "accounts show", summary: "Show the linked account as recorded.", example: exampleTenant }
)

/** The command with its subcommands. */
export const accounts = Command.make("accounts").pipe(
  Command.withDescription("Link provider accounts to organizations."),
  Command.withSubcommands([link.command, unlink.command, showOne.command])
)

/** The commands, for the help. */
export const accountCommands: ReadonlyArray<KnownCommand> = [link.known, unlink.known, showOne.known]
