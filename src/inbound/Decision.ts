import { type KnownSubjects, matchEvent } from "../destinations/publishing/Publication.ts"
import { type Envelope, encodeEnvelope, makeEnvelope } from "../events/Envelope.ts"
import type { Filters } from "../events/Filters.ts"
import type { FoundSubjects } from "../events/stripe/FilterSubjects.ts"
import { malformedAt } from "../events/stripe/ProviderEvent.ts"
import { type Malformed, type ProviderEvent, type SoldItems, translate } from "../events/stripe/Translate.ts"
import type { Environment } from "../platform/kit/Environment.ts"
import type { InboundContext } from "./ContextStatement.ts"
import type { ReceiptOutcome } from "./Receipt.ts"
import type { NewReceipt } from "./ReceiptStatement.ts"
import type { Unreadable } from "./UnreadableReports.ts"

/** What to do about a verified notification. Pure data. */
export interface Decision extends Pick<NewReceipt, "outcome" | "organizationId" | "events" | "unreadable"> {}

/** A decision to store only the receipt. */
export const nothing = (outcome: ReceiptOutcome, context?: InboundContext): Decision => ({
  outcome,
  organizationId: context?.organizationId ?? null,
  events: [],
  unreadable: null
})

/** A decision to store only the receipt, since this part could not be read. */
export const unreadable = (part: Unreadable["part"], { reason }: Malformed, context?: InboundContext): Decision => ({
  ...nothing("malformed", context),
  unreadable: { part, reason }
})

/** Whether a notification concerns an organization, and which. */
export type Classification =
  | { readonly _tag: "NotForUs"; readonly decision: Decision }
  | { readonly _tag: "ForUs"; readonly context: InboundContext }

/**
 * Classifies by mode and account. Notifications of a disconnected account are ignored until it is linked again, and
 * those of the other mode always.
 */
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

/** The envelopes of a connected account's event, or why it has none. */
export const envelopesOf = (
  environment: Environment,
  event: ProviderEvent,
  context: InboundContext,
  soldItems: SoldItems | null
): ReadonlyArray<Envelope> | "ignored" | "wrong_mode" | Malformed => {
  const translation = translate({ event, environment, organizationId: context.organizationId, soldItems })
  switch (translation._tag) {
    case "Translated":
      return withMilestone(translation.events, environment, event, context)
    case "Ignored":
      return "ignored"
    case "WrongMode":
      return "wrong_mode"
    case "Malformed":
      return translation
  }
}

/**
 * Turns envelopes into a decision, matching them with the endpoints' filters. The outcome follows from the context, but
 * the statement that stores it may correct it.
 */
export const decisionOf = (
  envelopes: ReadonlyArray<Envelope>,
  context: InboundContext,
  known?: KnownSubjects,
  unreadable: Unreadable | null = null
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
    unreadable
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
export const unreadableFilters = (
  envelopes: ReadonlyArray<Envelope>,
  { missing }: FoundSubjects,
  context: InboundContext
): Unreadable | null => {
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
  environment: Environment,
  event: ProviderEvent,
  { awaitsFirstPayment, organizationId }: InboundContext
): ReadonlyArray<Envelope> =>
  events.flatMap((envelope) =>
    envelope.type === "payment.succeeded" && awaitsFirstPayment
      ? [
          envelope,
          makeEnvelope({
            environment,
            organizationId,
            providerEventId: event.id,
            created: event.created,
            type: "milestone.first_payment",
            data: envelope.data
          })
        ]
      : [envelope]
  )
