import { Command, Options } from "@effect/cli"
import { Effect, Layer, Option } from "effect"
import { Organizations } from "../identity/Organizations.ts"
import type { Tenant } from "../kit/Tenant.ts"
import { Accounts, type LinkedAccount } from "../provider/Accounts.ts"
import { type Example, exampleOrganization } from "./Examples.ts"
import { CommandFailed } from "./Failure.ts"
import { environmentOption, formOption, organizationOption, requireOrganization } from "./Fields.ts"
import { database, Installation, noProvider, provider } from "./Installation.ts"
import { operator } from "./Operator.ts"
import { fields, jsonOption, show, time } from "./Output.ts"

/**
 * `accounts link | unlink | show`: the provider account of an organization and environment (contract, What the service
 * does). A link is made here and nowhere else, and alone connects a disconnected account again.
 */

const on = <E, R>(providerLayer: Layer.Layer<Layer.Layer.Context<typeof Accounts.layer>, E, R>) => providerLayer

/** What is on record about an account, for machines. */
export const accountJson = (account: LinkedAccount) => account

/** The same in one line; `-` where none is linked. */
export const accountLine = (account: Option.Option<LinkedAccount>): string =>
  Option.match(account, { onNone: () => "-", onSome: ({ accountId, status }) => `${accountId} (${status})` })
