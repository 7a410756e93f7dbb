import type { SqlClient } from "@effect/sql"
import { Context, Effect, Layer } from "effect"
import {
  type PermissionDenied,
  type ProviderAccountNotConnected,
  ProviderRequestRefused,
  type ServiceUnavailable
} from "../../errors/Errors.ts"
import type { PrincipalShape } from "../../identity/Principal.ts"
import { type OwnReturnUrls, ReturnUrls } from "../../identity/return-urls/ReturnUrls.ts"
import type { Tenant } from "../../kit/Tenant.ts"
import { orUnavailable } from "../../storage/Database.ts"
import { Accounts } from "../Accounts.ts"
import { Provider } from "../Provider.ts"
import type { ProviderFailure } from "../ProviderErrors.ts"
import { providerIdempotencyKey } from "../ProviderIdempotencyKey.ts"
import { Prices, type PriceTerms, requireSubscriptions, trialOf } from "../prices/Prices.ts"
import type { ProviderObject } from "../Schemas.ts"
import type { CreateCheckoutSession } from "./Api.ts"
import { isMarked } from "./Metadata.ts"
import type { SessionPage, SoldItems } from "./Port.ts"
import { makeSoldItemsRepo } from "./SoldItemsRepo.ts"

type Failure = ProviderFailure | ProviderAccountNotConnected | ServiceUnavailable

/** Who sells, and what they may sell. */
type Seller = Pick<PrincipalShape, "organizationId" | "environment" | "permissions">

/** The checkout page that a session is created for, and the pages that its payer returns to. */
export interface FromPage extends SessionPage {
  /** Null for the return URLs of the organization. */
  readonly returnUrls: OwnReturnUrls
}

/** The most lines of a subscription that recur, and the most that are paid once: the provider's bounds. */
const maximumLines = 20

/** Refuses more lines than the provider takes in a subscription, where it would name neither the bound nor the line. */
const checkLines = (terms: ReadonlyArray<PriceTerms>): Effect.Effect<void, ProviderRequestRefused> => {
  const recurring = terms.filter((of) => of.recurring).length
  return Math.max(recurring, terms.length - recurring) <= maximumLines
    ? Effect.void
    : new ProviderRequestRefused({
        code: "provider_invalid_request_error",
        fields: ["line_items"],
        message: `\`line_items\` must not have more than ${maximumLines} lines with recurring prices, and ${maximumLines} with others, in the mode subscription.`
      })
}

/**
 * What a new session's lines cost, if nothing else can cost the same in the end: the provider's owners can let payers of a
 * subscription choose another price, which costs as much today if both begin with a trial.
 */
const decisiveSubtotal = ({ amount_subtotal, mode }: ProviderObject): number | null =>
  mode === "payment" && Number.isSafeInteger(amount_subtotal) ? Number(amount_subtotal) : null

const make = Effect.gen(function* () {
  const provider = yield* Provider
  const accounts = yield* Accounts
  const prices = yield* Prices
  const returnUrls = yield* ReturnUrls
  const soldItems = yield* makeSoldItemsRepo

  /** The provider refuses recurring prices in payment mode. A caller who may not sell them gets that error instead. */
  const explainRefusal = Effect.fnUntraced(function* (
    principal: Seller,
    params: CreateCheckoutSession,
    refusal: ProviderFailure
  ) {
    if (params.mode === "payment" && !principal.permissions.has("subscriptions:write")) {
      const terms = yield* prices.termsOf(principal, params.line_items)
      yield* terms.some(({ recurring }) => recurring) ? requireSubscriptions(principal) : Effect.void
    }
    return yield* Effect.fail(refusal)
  })

  const create = Effect.fn("CheckoutSessions.create")(function* (
    principal: Seller,
    params: CreateCheckoutSession,
    effectKey: string,
    from?: FromPage
  ) {
    const terms = params.mode === "subscription" ? yield* prices.termsOf(principal, params.line_items) : []
    yield* checkLines(terms)
    const trialPeriodDays = trialOf(terms)
    const operation = "checkout.sessions.create"
    const ofOrganization = yield* returnUrls.ownOf(principal)
    const own = {
      successUrl: from?.returnUrls.successUrl ?? ofOrganization.successUrl,
      cancelUrl: from?.returnUrls.cancelUrl ?? ofOrganization.cancelUrl
    }
    const page = from === undefined ? undefined : { id: from.id, collect: from.collect }
    const created = yield* accounts
      .use(principal, (account) =>
        provider.createCheckoutSession(
          account,
          { ...params, trialPeriodDays, returnUrls: own, ...(page === undefined ? {} : { page }) },
          { idempotencyKey: providerIdempotencyKey({ tenant: principal, account, operation, effectKey }) }
        )
      )
      .pipe(Effect.catchTag("ProviderRequestRefused", (refusal) => explainRefusal(principal, params, refusal)))
    yield* soldItems
      .insert(principal, String(created.session["id"]), created.soldItems, decisiveSubtotal(created.session))
      .pipe(orUnavailable)
    return created.session
  })

  const soldIn = (tenant: Tenant, sessionId: string) =>
    accounts.use(tenant, (account) => provider.listSessionItems(account, sessionId))

  const completeSoldItems = Effect.fn("CheckoutSessions.completeSoldItems")(function* (
    tenant: Tenant,
    sessionId: string
  ) {
    const sold = yield* accounts.use(tenant, (account) =>
      Effect.gen(function* () {
        const session = yield* provider.retrieveCheckoutSession(account, sessionId)
        return isMarked(session) ? yield* provider.listSessionItems(account, sessionId) : null
      })
    )
    if (sold !== null) {
      yield* soldItems.insert(tenant, sessionId, sold).pipe(orUnavailable)
    }
    return sold
  })

  return { create, soldIn, completeSoldItems }
})

/** Checkout sessions that this service creates, with a record of what each sells. */
export class CheckoutSessions extends Context.Tag("connected-payments/provider/CheckoutSessions")<
  CheckoutSessions,
  {
    /**
     * Creates a session, from which payers return to the organization's own pages or else the operator's, and records what
     * it sells. The same idempotency key with the same parameters creates one.
     *
     * A subscription starts with the trial of its prices. If the caller may not sell a recurring price, it fails with
     * `permission_denied`, whatever the mode.
     *
     * @param from the checkout page that it is for; its return URLs come before the organization's
     */
    readonly create: (
      principal: Seller,
      params: CreateCheckoutSession,
      effectKey: string,
      from?: FromPage
    ) => Effect.Effect<ProviderObject, Failure | PermissionDenied>
    /**
     * What a session sells, read from the provider: payers change quantities, and owners offer upsells, cross-sells and
     * optional items there. Once it is complete, this is what was sold.
     */
    readonly soldIn: (tenant: Tenant, sessionId: string) => Effect.Effect<SoldItems, Failure>
    /**
     * The same, and recorded, in case a crash prevented the record after the session
     * was created. Null if this service did not create the session.
     */
    readonly completeSoldItems: (tenant: Tenant, sessionId: string) => Effect.Effect<SoldItems | null, Failure>
  }
>() {
  static readonly layer: Layer.Layer<
    CheckoutSessions,
    never,
    SqlClient.SqlClient | Provider | Accounts | Prices | ReturnUrls
  > = Layer.effect(CheckoutSessions, make)
}
