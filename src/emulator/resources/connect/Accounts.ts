import { createHash } from "node:crypto"
import { Effect, Schema } from "effect"
import { connectedAccount, isConnected } from "../../Authentication.ts"
import { listParams, newestFirst, page, storedList } from "../../api/Lists.ts"
import * as Params from "../../api/Params.ts"
import { noParams, type RequestContext, type Route, route } from "../../api/Route.ts"
import { noRequirements } from "../../control/AccountChanges.ts"
import { newId } from "../../Ids.ts"
import { accountInvalid, invalid, refuse } from "../../ProviderError.ts"
import { type Account, type BankAccount, nulls } from "../../Records.ts"

const capability = Schema.Struct({ requested: Params.optional(Params.boolean) })

/** The account's controller, which replaces the older `type`. */
const controllerParams = Schema.Struct({
  fees: Params.optional(Schema.Struct({ payer: Params.optional(Params.oneOf("account", "application")) })),
  losses: Params.optional(Schema.Struct({ payments: Params.optional(Params.oneOf("application", "stripe")) })),
  requirement_collection: Params.optional(Params.oneOf("application", "stripe")),
  stripe_dashboard: Params.optional(Schema.Struct({ type: Params.optional(Params.oneOf("express", "full", "none")) }))
})

const createParams = Schema.Struct({
  business_profile: Params.optional(
    Schema.Struct({ name: Params.optional(Params.text()), url: Params.optional(Params.url) })
  ),
  business_type: Params.optional(Params.oneOf("company", "government_entity", "individual", "non_profit")),
  capabilities: Params.optional(
    Schema.Struct({ card_payments: Params.optional(capability), transfers: Params.optional(capability) })
  ),
  controller: Params.optional(controllerParams),
  country: Params.optional(Params.matching(/^[A-Z]{2}$/, "country", "country_unsupported")),
  default_currency: Params.optional(Params.currency),
  email: Params.optional(Params.email),
  metadata: Params.optional(Params.metadata),
  type: Params.optional(Params.oneOf("custom", "express", "standard"))
})

const settings: NonNullable<Account["settings"]> = {
  bacs_debit_payments: { display_name: null, service_user_number: null },
  branding: { icon: null, logo: null, primary_color: null, secondary_color: null },
  card_issuing: { tos_acceptance: { date: null, ip: null } },
  card_payments: {
    decline_on: { avs_failure: false, cvc_failure: false },
    ...nulls("statement_descriptor_prefix statement_descriptor_prefix_kana statement_descriptor_prefix_kanji")
  },
  dashboard: { display_name: null, timezone: "Etc/UTC" },
  invoices: { default_account_tax_ids: null, hosted_payment_method_save: null },
  payments: {
    ...nulls("statement_descriptor statement_descriptor_kana statement_descriptor_kanji"),
    ...nulls("statement_descriptor_prefix_kana statement_descriptor_prefix_kanji")
  },
  payouts: {
    debit_negative_balances: true,
    schedule: { delay_days: 2, interval: "daily" },
    statement_descriptor: null
  },
  sepa_debit_payments: {}
}

/** The bank account for an account's payouts, always the same for the same id. */
const bankAccountOf = (account: string, country: string, currency: string): BankAccount => {
  const digest = createHash("sha256").update(account).digest("hex")
  return {
    id: `ba_${digest.slice(0, 24)}`,
    object: "bank_account",
    account,
    account_holder_name: null,
    account_holder_type: "company",
    account_type: null,
    available_payout_methods: ["standard"],
    bank_name: "STRIPE TEST BANK",
    country,
    currency,
    default_for_currency: true,
    fingerprint: digest.slice(24, 40),
    future_requirements: noBankRequirements,
    last4: "6789",
    metadata: {},
    requirements: noBankRequirements,
    routing_number: "110000000",
    status: "new"
  }
}

const noBankRequirements = { currently_due: [], errors: [], past_due: [], pending_verification: [] }

const externalAccountsOf = (id: string, country = "US", currency = "usd"): NonNullable<Account["external_accounts"]> =>
  storedList([bankAccountOf(id, country, currency)], `/v1/accounts/${id}/external_accounts`)

/** An account with completed onboarding: nothing is required, so charges and payouts are enabled from the start. */
export const makeAccount = (id: string, created: number, params: typeof createParams.Type = {}): Account => ({
  id,
  object: "account",
  business_profile: {
    ...nulls("annual_revenue estimated_worker_count mcc minority_owned_business_designation product_description"),
    ...nulls("specified_commercial_transactions_act_url support_address support_email support_phone support_url"),
    name: params.business_profile?.name ?? null,
    url: params.business_profile?.url ?? null
  },
  business_type: params.business_type ?? null,
  capabilities: { card_payments: "active", transfers: "active" },
  charges_enabled: true,
  controller: { is_controller: true, type: "application" },
  country: params.country ?? "US",
  created,
  default_currency: params.default_currency ?? "usd",
  details_submitted: true,
  email: params.email ?? null,
  external_accounts: externalAccountsOf(id, params.country, params.default_currency),
  future_requirements: noRequirements,
  metadata: Params.patchMetadata({}, params.metadata),
  payouts_enabled: true,
  requirements: noRequirements,
  settings,
  tos_acceptance: { date: null, ip: null, user_agent: null },
  type: params.type ?? "standard"
})

const firstRequirements = ["business_profile.name", "business_type", "external_account", "tos_acceptance.date"]

const controllerOf = ({ controller }: typeof createParams.Type): NonNullable<Account["controller"]> =>
  controller === undefined
    ? { is_controller: true, type: "application" }
    : {
        fees: { payer: controller.fees?.payer ?? "account" },
        is_controller: true,
        losses: { payments: controller.losses?.payments ?? "stripe" },
        requirement_collection: controller.requirement_collection ?? "stripe",
        stripe_dashboard: { type: controller.stripe_dashboard?.type ?? "full" },
        type: "application"
      }

/** An account as the platform creates it; its owner must complete it before it can charge. */
const makeNewAccount = (id: string, created: number, params: typeof createParams.Type): Account => {
  const { external_accounts: _, ...rest } = makeAccount(id, created, params)
  return {
    ...rest,
    capabilities: { card_payments: "inactive", transfers: "inactive" },
    charges_enabled: false,
    controller: controllerOf(params),
    details_submitted: false,
    payouts_enabled: false,
    requirements: {
      ...noRequirements,
      currently_due: firstRequirements,
      disabled_reason: "requirements.past_due",
      eventually_due: firstRequirements,
      past_due: firstRequirements
    },
    type: params.type ?? (params.controller === undefined ? "standard" : "none")
  }
}

/** The account with this id, if the requesting account may see it: itself, or one connected to it. */
const visibleAccount = (context: RequestContext, id: string) => {
  const account = connectedAccount(context.platform.objects, id)
  return account === undefined || (context.connected && context.account !== id)
    ? accountInvalid(id)
    : Effect.succeed(account)
}

/** The account with or without the platform's control. The platform sees bank accounts only of accounts it controls. */
export const underControl = (account: Account, controlled: boolean): Account => {
  const { external_accounts: _, ...rest } = account
  if (!controlled) return { ...rest, controller: { type: "account" } }
  return {
    ...rest,
    controller: { is_controller: true, type: "application" },
    external_accounts: externalAccountsOf(account.id, account.country, account.default_currency)
  }
}

const externalAccountParams = listParams(Params.optionals({ object: Params.oneOf("bank_account", "card") }))

const listExternalAccounts = Effect.fnUntraced(function* (
  context: RequestContext,
  params: typeof externalAccountParams.Type,
  id: string
) {
  const account = yield* visibleAccount(context, id)
  if (account.external_accounts === undefined) {
    return yield* refuse({
      status: 403,
      message: `The provided key does not have the required permissions for this endpoint on account '${id}'.`
    })
  }
  return yield* page(
    {
      items: account.external_accounts.data,
      matches: ({ object }) => params.object === undefined || object === params.object,
      noun: "external account",
      url: `/v1/accounts/${id}/external_accounts`
    },
    params
  )
})

export const accountRoutes: ReadonlyArray<Route> = [
  route({
    method: "POST",
    path: "/v1/accounts",
    answers: { object: "account" },
    params: createParams,
    run: (context, params) => {
      if (params.type !== undefined && params.controller !== undefined) {
        return invalid(
          "controller",
          "You may not provide the `type` parameter and `controller` parameters simultaneously."
        )
      }
      return Effect.sync(() => {
        const account = makeNewAccount(newId("acct_"), context.now, params)
        context.platform.objects.put("account", account.id, account)
        return account
      })
    }
  }),
  route({
    method: "GET",
    path: "/v1/accounts",
    answers: { listOf: "account" },
    params: listParams(Params.optionals({ created: Params.range })),
    run: ({ platform }, params) =>
      page(
        {
          items: newestFirst(platform.objects.all("account")).filter(
            ({ id }) => id !== platform.id && isConnected(platform.objects, id)
          ),
          matches: ({ created }) => Params.inRange(created ?? 0, params.created),
          noun: "account",
          url: "/v1/accounts"
        },
        params
      )
  }),
  route({
    method: "GET",
    path: "/v1/accounts/:id",
    answers: { object: "account" },
    params: noParams,
    run: (context, _, id) => visibleAccount(context, id)
  }),
  route({
    method: "GET",
    path: "/v1/accounts/:id/external_accounts",
    answers: { listOf: "bank_account" },
    params: externalAccountParams,
    run: listExternalAccounts
  }),
  route({
    method: "GET",
    path: "/v1/account",
    answers: { object: "account" },
    params: noParams,
    run: (context) => visibleAccount(context, context.account)
  })
]
