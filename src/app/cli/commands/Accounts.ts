import { Effect, Layer, Option, Schema } from "effect"
import { Organizations } from "../../../identity/organizations/Organizations.ts"
import { Accounts, type LinkedAccount } from "../../../payments/Accounts.ts"

import type { Tenant } from "../../../platform/kit/Tenant.ts"
import { type Command, command } from "../Command.ts"
import { CommandFailed } from "../Failure.ts"
import {
  accountOption,
  environmentOption,
  exampleOrganization,
  organizationOption,
  requireOrganization
} from "../Fields.ts"
import { database, noProvider, operator, provider } from "../Installation.ts"
import { fields, time } from "../Output.ts"

/** `accounts link | unlink | show` (contract 1.5). Only a link created here reconnects a disconnected account. */

const services = Layer.mergeAll(Organizations.layer, Layer.provide(Accounts.layer, noProvider)).pipe(
  Layer.provide(database)
)

const tenantOptions = { organization: organizationOption, environment: environmentOption }

const exampleTenant = `--organization ${exampleOrganization} --environment sandbox`

/** The account in one line; `-` if none is linked. */
export const accountLine = (account: Option.Option<LinkedAccount>): string =>
  Option.match(account, { onNone: () => "-", onSome: ({ accountId, status }) => `${accountId} (${status})` })

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

/** Fails if no account is linked. */
const found = <A, E, R>({ environment, organizationId }: Tenant, account: Effect.Effect<Option.Option<A>, E, R>) =>
  Effect.flatMap(
    account,
    Option.match({
      onNone: () =>
        new CommandFailed({ message: `Organization ${organizationId} has no account linked in ${environment}.` }),
      onSome: Effect.succeed
    })
  )

const tenantOf = ({ environment, organization }: Schema.Struct.Type<typeof tenantOptions>) =>
  Effect.as(requireOrganization(organization), { organizationId: organization, environment })

export const accountCommands: ReadonlyArray<Command> = [
  command({
    name: "accounts link",
    summary:
      "Link a provider account, after reading it from the provider. Only this connects a disconnected one again.",
    example: `${exampleTenant} --account acct_1AbCdEfGhIjKlMnO`,
    input: Schema.Struct({ ...tenantOptions, account: accountOption("The connected account's id at the provider.") }),
    services: Layer.mergeAll(Organizations.layer, Layer.provide(Accounts.layer, provider)).pipe(
      Layer.provide(database)
    ),
    run: Effect.fnUntraced(function* ({ account, ...options }) {
      const accounts = yield* Accounts
      const tenant = yield* tenantOf(options)
      const linked = yield* accounts.link(tenant, account, yield* operator).pipe(
        Effect.catchTag(
          "AccountAccessRevoked",
          (cause) =>
            new CommandFailed({
              message: `The provider knows no account ${account} that this platform has access to in ${tenant.environment}. Nothing was changed.`,
              cause
            })
        )
      )
      return { json: { ...tenant, ...linked }, text: accountText(tenant, linked) }
    })
  }),
  command({
    name: "accounts unlink",
    summary:
      "Forget the linked account. Nothing changes at the provider; the account's events are no longer delivered.",
    example: exampleTenant,
    input: Schema.Struct(tenantOptions),
    services,
    run: Effect.fnUntraced(function* (options) {
      const tenant = yield* tenantOf(options)
      const accounts = yield* Accounts
      const unlinked = yield* found(tenant, accounts.unlink(tenant, yield* operator))
      return {
        json: { ...tenant, accountId: unlinked.accountId, unlinked: true },
        text: `${unlinked.accountId} is no longer linked to organization ${tenant.organizationId} in ${tenant.environment}.`
      }
    })
  }),
  command({
    name: "accounts show",
    summary: "Show the linked account as recorded.",
    example: exampleTenant,
    input: Schema.Struct(tenantOptions),
    services,
    run: Effect.fnUntraced(function* (options) {
      const tenant = yield* tenantOf(options)
      const known = yield* found(tenant, (yield* Accounts).show(tenant))
      return { json: { ...tenant, ...known }, text: accountText(tenant, known) }
    })
  })
]
