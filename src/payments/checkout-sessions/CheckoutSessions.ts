import { Effect } from "effect"
import type { PrincipalShape } from "../../identity/Principal.ts"
import { type OwnReturnUrls, ReturnUrls } from "../../identity/return-urls/ReturnUrls.ts"
import { ProviderRequestRefused } from "../../platform/errors/Errors.ts"
import { service } from "../../platform/kit/Service.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import { orUnavailable } from "../../platform/storage/Database.ts"
import { Accounts } from "../Accounts.ts"
import { Provider } from "../Provider.ts"
import type { KeyFor } from "../ProviderCall.ts"
import { Prices, type PriceTerms, requireSubscriptions, trialOf } from "../prices/Prices.ts"
import { requestRefused } from "../RefusalReasons.ts"
import type { ProviderObject } from "../Schemas.ts"
import type { CreateCheckoutSession } from "./Api.ts"
import { isMarked } from "./Metadata.ts"
import { type FinishedSession, makeSoldItemsRepo } from "./SoldItemsRepo.ts"
import type { SessionPage } from "./StripeCheckoutSessions.ts"

type Seller = Pick<PrincipalShape, "organizationId" | "environment" | "permissions">

/** The checkout page that a session is created for, and the pages that its payer returns to. */
export interface FromPage extends SessionPage {
  /** Null for the return URLs of the organization. */
  readonly returnUrls: OwnReturnUrls
}

/** The provider's limit for a subscription's recurring lines, and for its one-time lines. */
const maximumLines = 20

/** The provider's own refusal names neither limit nor line. */
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
 * The subtotal of a new session's lines, if it proves that these lines were sold; else null. A subscription's does not:
 * at the provider, owners can let payers choose another price, which costs the same today if both begin with a trial.
 */
const decisiveSubtotal = ({ amount_subtotal, mode }: ProviderObject): number | null =>
  mode === "payment" && Number.isSafeInteger(amount_subtotal) ? Number(amount_subtotal) : null

/** Without a code; callers who may not sell recurring prices get `permission_denied`. */
const makeExplainRefusal = (prices: Prices["Type"]) =>
  Effect.fnUntraced(function* (
    principal: Seller,
    { line_items, mode }: CreateCheckoutSession,
    refusal: ProviderRequestRefused
  ) {
    const mayLackPermission = mode === "payment" && !principal.permissions.has("subscriptions:write")
    if (refusal.code !== "provider_invalid_request_error" && !mayLackPermission) return yield* refusal
    const terms = yield* Effect.mapError(prices.termsOf(principal, line_items), () => refusal)
    const recurring = terms.findIndex((of) => of.recurring)
    if (mode === "payment" ? recurring === -1 : recurring !== -1) return yield* refusal
    yield* mode === "payment" ? requireSubscriptions(principal) : Effect.void
    const reason =
      mode === "payment"
        ? `must be subscription here: \`line_items.${recurring}.price\` is recurring, and the mode payment sells only one-time prices`
        : "must be payment here: no price in `line_items` is recurring, and the mode subscription needs a recurring price"
    return yield* requestRefused({ ...refusal, fields: ["mode"] }, () => reason)
  })

const makeCreate = Effect.gen(function* () {
  const provider = yield* Provider
  const accounts = yield* Accounts
  const prices = yield* Prices
  const returnUrls = yield* ReturnUrls
  const soldItems = yield* makeSoldItemsRepo
  const explainRefusal = makeExplainRefusal(prices)

  /**
   * Creates a session and records the items it sells. Payers return to the organization's own pages or else the
   * operator's. The same idempotency key with the same parameters creates one session.
   *
   * A subscription starts with the trial of its prices. If the caller may not sell a recurring price, it fails with
   * `permission_denied`, whatever the mode.
   *
   * @param from the session's checkout page, whose return URLs take precedence over the organization's
   */
  return Effect.fn("CheckoutSessions.create")(function* (
    principal: Seller,
    params: CreateCheckoutSession,
    keyFor: KeyFor,
    from?: FromPage
  ) {
    const terms = params.mode === "subscription" ? yield* prices.termsOf(principal, params.line_items) : []
    yield* checkLines(terms)
    const trialPeriodDays = trialOf(terms)
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
          keyFor(account)
        )
      )
      .pipe(Effect.catchTag("ProviderRequestRefused", (refusal) => explainRefusal(principal, params, refusal)))
    yield* soldItems
      .insert(principal, String(created.session["id"]), created.soldItems, {
        subtotal: decisiveSubtotal(created.session),
        description: created.description,
        reference: params.client_reference_id ?? null,
        checkoutPage: from?.id ?? null
      })
      .pipe(orUnavailable)
    return created.session
  })
})

const makeSales = Effect.gen(function* () {
  const provider = yield* Provider
  const accounts = yield* Accounts
  const soldItems = yield* makeSoldItemsRepo

  /** Payers change quantities and owners offer upsells; of a complete session, these are the items sold. */
  const soldIn = (tenant: Tenant, sessionId: string) =>
    accounts.use(tenant, (account) => provider.listSessionItems(account, sessionId))

  /** Like `soldIn`, and records the items. Null if this service did not create the session. */
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

  return {
    soldIn,
    completeSoldItems,
    /** Records the sale of a session that has just been finished, if this service created it or its payment link. */
    finish: (tenant: Tenant, session: FinishedSession) => orUnavailable(soldItems.finish(tenant, session)),
    /** The newest sessions with this order reference, of the last 90 days. */
    sessionsOf: (tenant: Tenant, reference: string) => orUnavailable(soldItems.sessionsOf(tenant, reference)),
    /** The sales of these payments, of the last 90 days. */
    salesOf: (tenant: Tenant, paymentIds: ReadonlyArray<string>) =>
      orUnavailable(soldItems.salesOf(tenant, paymentIds)),
    /** Removes old records of sold items. */
    clean: orUnavailable(soldItems.clean)
  }
})

const make = Effect.zipWith(makeCreate, makeSales, (create, sales) => ({ create, ...sales }))

export class CheckoutSessions extends service<CheckoutSessions>()(
  "connected-payments/payments/CheckoutSessions",
  make
) {}
