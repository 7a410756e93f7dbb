import { Effect, Either, Predicate, Schema } from "effect"
import { type KnownSubjects, matchEvent } from "../destinations/publishing/Publication.ts"
import { type Envelope, type EventIdentity, encodeEnvelope, makeEnvelope } from "../events/Envelope.ts"
import { amount, currency } from "../events/Fields.ts"
import type { Filters } from "../events/Filters.ts"
import {
  type FoundSubjects,
  type Malformed,
  malformed,
  malformedAt,
  orAbsent,
  type ProviderEvent,
  ProviderName,
  Reference,
  type SoldItems,
  type TruncatedList,
  withWholeList
} from "../events/stripe/ProviderEvent.ts"
import { Accounts } from "../payments/Accounts.ts"
import { CheckoutSessions } from "../payments/checkout-sessions/CheckoutSessions.ts"
import { isMarked } from "../payments/checkout-sessions/Metadata.ts"
import { Provider, type ProviderShape } from "../payments/Provider.ts"
import type { ProviderFailure } from "../payments/ProviderErrors.ts"
import type { ProviderObject } from "../payments/Schemas.ts"
import type { ProviderAccountNotConnected, ServiceUnavailable } from "../platform/errors/Errors.ts"
import { KeyedHash } from "../platform/kit/crypto/KeyedHash.ts"
import type { Environment } from "../platform/kit/Environment.ts"
import type { Tenant } from "../platform/kit/Tenant.ts"
import type { InboundContext, OfferedItems } from "./ContextStatement.ts"
import type { MalformedPart, ReceiptOutcome } from "./Receipt.ts"
import type { NewReceipt } from "./ReceiptStatement.ts"

export interface Decision extends Pick<NewReceipt, "outcome" | "organizationId" | "events" | "malformedPart"> {}

/** A decision to store only the receipt. */
export const nothing = (outcome: ReceiptOutcome, context?: InboundContext): Decision => ({
  outcome,
  organizationId: context?.organizationId ?? null,
  events: [],
  malformedPart: null
})

export const malformedDecision = (
  part: MalformedPart["part"],
  { reason }: Malformed,
  context?: InboundContext
): Decision => ({
  ...nothing("malformed", context),
  malformedPart: { part, reason }
})

export type Classification =
  | { readonly _tag: "NotForUs"; readonly decision: Decision }
  | { readonly _tag: "ForUs"; readonly context: InboundContext }

/** Notifications of a disconnected account are not for us until it is linked again, those of the other mode never. */
export const classify = (
  environment: Environment,
  { livemode }: { readonly livemode: boolean },
  context: InboundContext | undefined
): Classification => {
  if (livemode !== (environment === "production")) {
    return { _tag: "NotForUs", decision: nothing("wrong_mode", context) }
  }
  return context === undefined || !context.connected
    ? { _tag: "NotForUs", decision: nothing("unlinked", context) }
    : { _tag: "ForUs", context }
}

/** A connected account's event, with the known facts about it. */
interface AccountEvent {
  readonly environment: Environment
  readonly event: ProviderEvent
  readonly context: InboundContext
  /** Null if nothing was sold, or the items are unknown. */
  readonly soldItems: SoldItems | null
}

/** The envelopes of a connected account's event, or why it has none. */
export const envelopesOf = (
  { name, reader }: Pick<ProviderShape, "name" | "reader">,
  { context, environment, event, soldItems }: AccountEvent
): ReadonlyArray<Envelope> | "ignored" | "wrong_mode" | Malformed => {
  const translation = reader.translate({ event, environment, organizationId: context.organizationId, soldItems })
  switch (translation._tag) {
    case "Translated":
      return withMilestone(translation.events, { provider: name, environment }, event, context)
    case "Ignored":
      return "ignored"
    case "WrongMode":
      return "wrong_mode"
    case "Malformed":
      return translation
  }
}

/** The outcome follows from the context; the statement that stores it may correct it. */
export const decisionOf = (
  envelopes: ReadonlyArray<Envelope>,
  context: InboundContext,
  known?: KnownSubjects,
  malformedPart: MalformedPart | null = null
): Decision => {
  const events = envelopes.map((envelope) =>
    matchEvent(
      { id: envelope.id, type: envelope.type, payload: encodeEnvelope(envelope), data: { ...envelope.data } },
      context.endpoints,
      known
    )
  )
  return {
    outcome: events.some(({ matching }) => matching.some(({ active }) => active)) ? "delivered" : "no_subscriber",
    organizationId: context.organizationId,
    events,
    malformedPart
  }
}

/** Whether some endpoint, paused or not, subscribes to one of these events with filters of this kind. */
const isAsked = (
  envelopes: ReadonlyArray<Envelope>,
  { endpoints }: InboundContext,
  asks: (filters: Filters) => boolean
): boolean =>
  endpoints.some(({ events, filters }) => asks(filters) && envelopes.some(({ type }) => events.includes(type)))

const byItems = ({ prices, products }: Filters): boolean => products !== undefined || prices !== undefined
const byMetadata = ({ metadata }: Filters): boolean => metadata !== undefined

/** The fields that endpoints filter these events by but the provider's object no longer has; null if there are none. */
export const malformedFilters = (
  envelopes: ReadonlyArray<Envelope>,
  { missing }: FoundSubjects,
  context: InboundContext
): MalformedPart | null => {
  const paths = [
    ...(missing.items !== null && isAsked(envelopes, context, byItems) ? [missing.items] : []),
    ...(missing.metadata !== null && isAsked(envelopes, context, byMetadata) ? [missing.metadata] : [])
  ]
  return paths.length === 0
    ? null
    : { part: "filters", reason: malformedAt(paths.map((path) => `event.data.object.${path}`)).reason }
}

/** Whether some endpoint, paused or not, can only be matched with these events by the whole of a truncated list. */
export const needsWholeList = (
  envelopes: ReadonlyArray<Envelope>,
  subjects: FoundSubjects,
  context: InboundContext
): boolean => subjects.truncated && isAsked(envelopes, context, byItems)

/** Reports an account's first payment twice: as the payment, and as a milestone (contract 6.6). */
const withMilestone = (
  events: ReadonlyArray<Envelope>,
  of: Pick<EventIdentity, "provider" | "environment">,
  event: ProviderEvent,
  { awaitsFirstPayment, organizationId }: InboundContext
): ReadonlyArray<Envelope> =>
  events.flatMap((envelope) =>
    envelope.type === "payment.succeeded" && awaitsFirstPayment
      ? [
          envelope,
          makeEnvelope({
            ...of,
            organizationId,
            providerEventId: event.id,
            created: event.created,
            type: "milestone.first_payment",
            data: envelope.data
          })
        ]
      : [envelope]
  )

export type EnrichmentFailure = ProviderFailure | ProviderAccountNotConnected | ServiceUnavailable

/** Data fetched for an event so far; null if the provider has no such object. */
export interface Fetched {
  readonly soldItems?: SoldItems | null
  readonly items?: ReadonlyArray<ProviderObject> | null
}

export interface NeedsFetch {
  readonly _tag: "NeedsFetch"
  readonly fetch: Effect.Effect<Fetched, EnrichmentFailure>
}

export type DecisionStep<A> = NeedsFetch | { readonly _tag: "Decided"; readonly value: A }

const needsFetch = (fetch: NeedsFetch["fetch"]): NeedsFetch => ({ _tag: "NeedsFetch", fetch })

const decided = <A>(value: A): DecisionStep<A> => ({ _tag: "Decided", value })

/**
 * Whether a session may have sold something other than recorded at its creation: payers can change quantities or remove
 * a line, if a payment link lets them, and add optional items that the account's owner offers at the provider.
 */
const mayDiffer = ({ subtotal }: OfferedItems, session: ProviderObject): boolean =>
  subtotal === null ||
  session["amount_subtotal"] !== subtotal ||
  (Array.isArray(session["optional_items"]) && session["optional_items"].length > 0)

/** Maps "not found" to null: an object that the provider does not know now will not be found on a retry either. */
const orNull = <A, E>(asked: Effect.Effect<A, E>) =>
  Effect.catchIf(
    asked,
    (error) => Predicate.isTagged(error, "ProviderObjectNotFound"),
    () => Effect.as(Effect.logWarning("The provider can't find the object that its notification is about"), null)
  )

/**
 * Decides about a connected account's snapshot event, after fetching missing data from the provider: the sold items of
 * our session, unless they must be the recorded ones, and truncated lists that an endpoint filters by. Most events lack
 * nothing, and need no call to the provider.
 */
export const makeEnrichment = Effect.gen(function* () {
  const accounts = yield* Accounts
  const checkoutSessions = yield* CheckoutSessions
  const provider = yield* Provider
  const keyedHash = yield* KeyedHash

  const fetchSoldItems = (tenant: Tenant, sessionId: string, isRecorded: boolean): NeedsFetch["fetch"] =>
    Effect.map(
      orNull(
        isRecorded ? checkoutSessions.soldIn(tenant, sessionId) : checkoutSessions.completeSoldItems(tenant, sessionId)
      ),
      (soldItems) => ({ soldItems })
    )

  const fetchItems = (tenant: Tenant, { kind, ownerId }: TruncatedList): NeedsFetch["fetch"] => {
    const list = kind === "subscription_items" ? provider.listSubscriptionItems : provider.listInvoiceLines
    return Effect.map(orNull(accounts.use(tenant, (account) => list(account, ownerId))), (items) => ({ items }))
  }

  /** The decision about an event, given the context and the fetched data, or the data to fetch first. */
  const decide = (
    environment: Environment,
    event: ProviderEvent,
    context: InboundContext,
    fetched: Fetched
  ): DecisionStep<Decision> => {
    const tenant = { organizationId: context.organizationId, environment }
    const { offered } = context
    const { object } = event.data
    const reference = provider.reader.soldItemsReference(event)
    if (reference !== null && fetched.soldItems === undefined) {
      const isOpen = offered === null ? isMarked(object) : mayDiffer(offered, object)
      if (isOpen) return needsFetch(fetchSoldItems(tenant, reference.sessionId, offered !== null))
    }
    const soldItems = fetched.soldItems ?? offered
    const envelopes = envelopesOf(provider, { environment, event, context, soldItems })
    if (typeof envelopes === "string") {
      return decided(nothing(envelopes, context))
    }
    if ("_tag" in envelopes) {
      return decided(malformedDecision("object", envelopes, context))
    }
    const list = provider.reader.truncatedList(event)
    const whole = list === null || !fetched.items ? event : withWholeList(event, list, fetched.items)
    const subjects = provider.reader.filterSubjects(whole, soldItems)
    return list !== null && fetched.items === undefined && needsWholeList(envelopes, subjects, context)
      ? needsFetch(fetchItems(tenant, list))
      : decided(decisionOf(envelopes, context, { subjects, keyedHash }, malformedFilters(envelopes, subjects, context)))
  }

  return { decide }
})

export const nothingFetched: Fetched = {}

/**
 * Retries an attempt until it decides, each time with everything fetched so far. Each thing is fetched once, so there
 * are three attempts at most. Each attempt reads again the data that may have changed during the call to the provider.
 */
export const untilDecided = <A, E>(
  attempt: (fetched: Fetched) => Effect.Effect<DecisionStep<A>, E>,
  fetched: Fetched = nothingFetched
): Effect.Effect<A, E | EnrichmentFailure> =>
  Effect.flatMap(attempt(fetched), (attempted) =>
    attempted._tag === "Decided"
      ? Effect.succeed(attempted.value)
      : Effect.flatMap(attempted.fetch, (more) => untilDecided(attempt, { ...fetched, ...more }))
  )

/** The provider's reports of refunds that failed. The catalog has no event for them: see the guide to events. */

/** A refund that the payer will not get: it failed, or was canceled while it waited for the payer. */
export interface FailedRefund {
  readonly refundId: string
  readonly chargeId: string | null
  readonly paymentId: string | null
  /** In the smallest unit of the currency. */
  readonly amount: number
  readonly currency: string
  readonly status: "failed" | "canceled"
  /** The provider's reason; null if it gives none. */
  readonly reason: string | null
}

const Refund = Schema.Struct({
  id: ProviderName,
  status: orAbsent(Schema.String)
})

const Failed = Schema.Struct({
  charge: orAbsent(Schema.compose(Reference, ProviderName)),
  payment_intent: orAbsent(Schema.compose(Reference, ProviderName)),
  amount: amount("What was to be refunded").pipe(Schema.nonNegative()),
  currency,
  failure_reason: orAbsent(ProviderName)
})

const decodeRefund = Schema.decodeUnknownEither(Refund, { errors: "all" })
const decodeFailed = Schema.decodeUnknownEither(Failed, { errors: "all" })

/** The failed refund in an event about a refund; null if the refund has not failed. */
export const failedRefundOf = ({ data }: ProviderEvent): Either.Either<FailedRefund | null, Malformed> =>
  decodeRefund(data.object).pipe(
    Either.flatMap(({ id, status }) =>
      status === "failed" || status === "canceled"
        ? Either.map(
            decodeFailed(data.object),
            (refund): FailedRefund => ({
              refundId: id,
              chargeId: refund.charge,
              paymentId: refund.payment_intent,
              amount: refund.amount,
              currency: refund.currency,
              status,
              reason: refund.failure_reason
            })
          )
        : Either.right(null)
    ),
    Either.mapLeft((error) => malformed("event.data.object", error))
  )
