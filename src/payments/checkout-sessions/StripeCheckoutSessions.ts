import { createHash } from "node:crypto"
import { Effect } from "effect"
import type Stripe from "stripe"
import type { SoldItems } from "../../events/stripe/ProviderEvent.ts"
import type { OwnReturnUrls } from "../../identity/return-urls/ReturnUrls.ts"
import { ProviderUnavailable } from "../../platform/errors/Errors.ts"
import { canonical } from "../../platform/kit/Idempotency.ts"
import type {
  ConnectedAccount,
  CreateObject,
  ListLines,
  ListObjects,
  ProviderCall,
  RetrieveObject,
  WriteOptions
} from "../ProviderCall.ts"
import { isRefusal } from "../ProviderErrors.ts"
import { inOurNames } from "../RefusalReasons.ts"
import type { ProviderObject } from "../Schemas.ts"
import {
  named,
  namedPage,
  type StripeCall,
  type StripeProviderOptions,
  toJson,
  withoutSecrets
} from "../stripe/StripeCall.ts"
import { stripeObjects, withTimeRange } from "../stripe/StripeObjects.ts"
import { everyPage } from "../stripe/StripePages.ts"
import type { CreateCheckoutSession, ListCheckoutSessions } from "./Api.ts"
import type { SessionCollection } from "./Collection.ts"
import { checkoutMarker, pageKey } from "./Metadata.ts"

const unique = (ids: ReadonlyArray<string>): ReadonlyArray<string> => [...new Set(ids)]

/** The prices and products that lines sell. A line with a quantity of 0 sells nothing. */
export const soldItemsOf = (items: ReadonlyArray<Stripe.LineItem>): SoldItems => {
  const prices = items.flatMap(({ price, quantity }) => (price === null || quantity === 0 ? [] : [price]))
  return {
    priceIds: unique(prices.map((price) => price.id)),
    productIds: unique(prices.map(({ product }) => (typeof product === "string" ? product : product.id)))
  }
}

/** Lines in words, such as "2 × Coffee, Mug": at most 500 characters. */
export const lineWords = (lines: ReadonlyArray<Stripe.LineItem>): string =>
  lines
    .filter(({ quantity }) => quantity !== 0)
    .map(({ description, quantity }) => `${(quantity ?? 1) > 1 ? `${quantity} × ` : ""}${description ?? "–"}`)
    .join(", ")
    .slice(0, 500)

/** A page that holds every line: new sessions have at most 100, payment links 20. */
export const everyLine = { limit: 100 } as const

/**
 * Returns all lines of an object. Stripe expands only the first ten; if there are more, all are requested. If that is
 * refused, the object was created or changed all the same, so the outcome is reported as open until a repeat.
 */
export const allLines = (
  expanded: Stripe.ApiList<Stripe.LineItem> | undefined,
  ask: ProviderCall<Stripe.ApiList<Stripe.LineItem>>
): ProviderCall<ReadonlyArray<Stripe.LineItem>> =>
  expanded === undefined || expanded.has_more
    ? ask.pipe(
        Effect.map(({ data }) => data),
        Effect.mapError((failure) => (isRefusal(failure) ? new ProviderUnavailable({ cause: failure }) : failure))
      )
    : Effect.succeed(expanded.data)

export interface SubscriptionTerms {
  /** Days before a new subscription's first charge; null for none. */
  readonly trialPeriodDays: number | null
}

export interface SessionPage {
  /** The session's metadata `svc_checkout_page`. */
  readonly id: string
  readonly collect: SessionCollection
}

export type NewCheckoutSession = CreateCheckoutSession &
  SubscriptionTerms & {
    /** The organization's own pages that payers return to; null for the operator's. */
    readonly returnUrls: OwnReturnUrls
    /** Absent if it is created by a request to the API. */
    readonly page?: SessionPage
  }

/** The provider's operations on checkout sessions, which are returned without their items. */
export interface CheckoutSessionsPort {
  /** Also returns the items that the session sells, according to the provider. */
  readonly createCheckoutSession: CreateObject<
    NewCheckoutSession,
    { readonly session: ProviderObject; readonly soldItems: SoldItems; readonly description: string }
  >
  readonly retrieveCheckoutSession: RetrieveObject
  readonly listCheckoutSessions: ListObjects<ListCheckoutSessions>
  /** The sessions in which a payer gave this e-mail address, newest first. */
  readonly findCheckoutSessions: ListObjects<{ readonly email: string; readonly limit: number }>
  /** Expires an open session; returns an already expired one unchanged. */
  readonly expireCheckoutSession: (
    account: ConnectedAccount,
    id: string,
    options: WriteOptions
  ) => ProviderCall<ProviderObject>
  readonly listSessionLines: ListLines
  readonly listSessionItems: (account: ConnectedAccount, id: string) => ProviderCall<SoldItems>
}

/** The operator's pages, which payers return to if the organization has none of its own. */
type DefaultReturnUrls = Pick<StripeProviderOptions, "checkoutSuccessUrl" | "checkoutCancelUrl">

const customField = ({
  key,
  label,
  options,
  type,
  ...field
}: NonNullable<SessionCollection["customFields"]>[number]): Stripe.Checkout.SessionCreateParams.CustomField => ({
  key,
  type,
  label: { type: "custom", custom: label },
  ...(field.optional === undefined ? {} : { optional: field.optional }),
  ...(options === undefined ? {} : { dropdown: { options: options.map((option) => ({ ...option })) } })
})

const collectionParams = ({
  billingAddress = false,
  customFields = [],
  phoneNumber = false
}: SessionCollection): Partial<Stripe.Checkout.SessionCreateParams> => ({
  ...(billingAddress ? { billing_address_collection: "required" as const } : {}),
  ...(phoneNumber ? { phone_number_collection: { enabled: true } } : {}),
  ...(customFields.length === 0 ? {} : { custom_fields: customFields.map(customField) })
})

export const sessionParams = (
  { page, returnUrls, trialPeriodDays, ...params }: NewCheckoutSession,
  defaults: DefaultReturnUrls
): Stripe.Checkout.SessionCreateParams => {
  const { line_items, metadata, ...rest } = params
  const marked = {
    ...metadata,
    ...(page === undefined ? {} : { [pageKey]: page.id }),
    [checkoutMarker.key]: checkoutMarker.value
  }
  // Filters match the metadata of payments and subscriptions, so these get a copy of the caller's pairs
  const carried = { metadata: { ...metadata } }
  const trial = trialPeriodDays === null ? {} : { trial_period_days: trialPeriodDays }
  return {
    ...rest,
    ...(page === undefined ? {} : collectionParams(page.collect)),
    line_items: line_items.map((item) => ({ ...item })),
    metadata: marked,
    ...(params.mode === "payment" ? { payment_intent_data: carried } : { subscription_data: { ...carried, ...trial } }),
    success_url: returnUrls.successUrl ?? defaults.checkoutSuccessUrl,
    cancel_url: returnUrls.cancelUrl ?? defaults.checkoutCancelUrl,
    expand: ["line_items"]
  }
}

/**
 * Returns the idempotency key of a new session, a hash that includes all parameters sent, which are more than the
 * caller chose. The provider refuses a key with other parameters, so a repeat after a lost answer would fail if return
 * pages or the service's version had changed in the meantime. It creates another session instead; nobody has the first
 * one's page.
 */
const sessionKey = (idempotencyKey: string, params: Stripe.Checkout.SessionCreateParams): string =>
  createHash("sha256")
    .update(JSON.stringify([idempotencyKey, canonical(params)]))
    .digest("hex")

/** The callers' names for the parameters that the service adds to a session; null if callers have no such field. */
export const checkoutFieldNames = {
  "payment_intent_data.metadata": "metadata",
  "subscription_data.metadata": "metadata",
  "subscription_data.trial_period_days": "line_items",
  success_url: null,
  cancel_url: null
} as const

/** Removes a session's lines, so that all answers are alike: Stripe returns only the first ten, and only on request. */
const withoutLines = ({ line_items: _, ...session }: ProviderObject): ProviderObject => session

export const stripeCheckoutSessions = (call: StripeCall, defaults: DefaultReturnUrls): CheckoutSessionsPort => {
  const { list, retrieve } = stripeObjects(call)
  const retrieveCheckoutSession = retrieve("checkout.sessions.retrieve", (client) => client.checkout.sessions, {})
  const listLines = (account: ConnectedAccount, id: string, params: Stripe.Checkout.SessionListLineItemsParams) =>
    call("checkout.sessions.listLineItems", account, (client, scope) =>
      client.checkout.sessions.listLineItems(id, params, scope)
    )
  return {
    createCheckoutSession: (account, params, { idempotencyKey }) =>
      Effect.gen(function* () {
        const sent = sessionParams(params, defaults)
        const options = { idempotencyKey: sessionKey(idempotencyKey, sent) }
        const session = yield* call("checkout.sessions.create", account, (client, scope) =>
          client.checkout.sessions.create(sent, { ...scope, ...options })
        )
        const lines = yield* allLines(session.line_items, listLines(account, session.id, everyLine))
        return {
          session: withoutLines(withoutSecrets(toJson(session))),
          soldItems: soldItemsOf(lines),
          description: lineWords(lines)
        }
      }).pipe(Effect.mapError(inOurNames(checkoutFieldNames))),
    retrieveCheckoutSession,
    /** Stripe refuses a second time without an error code: an expired session is returned. */
    expireCheckoutSession: (account, id, { idempotencyKey }) =>
      named(
        call("checkout.sessions.expire", account, (client, scope) =>
          client.checkout.sessions.expire(id, {}, { ...scope, idempotencyKey })
        )
      ).pipe(
        Effect.catchTag("ProviderRequestRefused", (refusal) =>
          Effect.filterOrFail(
            retrieveCheckoutSession(account, id),
            ({ status }) => status === "expired",
            () => refusal
          )
        )
      ),
    listSessionLines: (account, id, params) => namedPage(listLines(account, id, params)),
    listCheckoutSessions: list("checkout.sessions.list", (client) => client.checkout.sessions, withTimeRange),
    findCheckoutSessions: list(
      "checkout.sessions.list",
      (client) => client.checkout.sessions,
      ({ email, limit }) => ({ customer_details: { email }, limit })
    ),
    // A payer may add optional items and cross-sells to the up to 100 lines of a new session
    listSessionItems: (account, id) =>
      Effect.map(
        everyPage((params) => listLines(account, id, params)),
        soldItemsOf
      )
  }
}
