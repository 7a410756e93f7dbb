import { HttpTraceContext } from "@effect/platform"
import { type SqlClient, SqlError } from "@effect/sql"
import { Clock, Context, Effect, Either, Layer, Option } from "effect"
import { WakeUp } from "../deliveries/WakeUp.ts"
import { ServiceUnavailable, SignatureInvalid } from "../Errors.ts"
import { type Envelope, encodeEnvelope, makeEnvelope } from "../events/Envelope.ts"
import { filterSubjects } from "../events/FilterSubjects.ts"
import { type FilterSubjects, passes } from "../events/Filters.ts"
import { type ProviderEvent, parseProviderEvent, soldItemsReference, translate } from "../events/Translate.ts"
import { Provider } from "../provider/Provider.ts"
import type { Environment } from "../Settings.ts"
import { isUnavailable } from "../storage/Database.ts"
import {
  type InboundContext,
  makeReceiptsRepo,
  type NewEvent,
  type NewReceipt,
  type ReceiptOutcome
} from "./ReceiptsRepo.ts"

/** What became of a notification: `duplicate` where it was known already. */
export type Received = ReceiptOutcome | "duplicate"

/** The provider's notifications (contract, What the service does, rule 8). */
export class Inbound extends Context.Tag("connected-payments/inbound/Inbound")<
  Inbound,
  {
    /**
     * Verifies a notification and stores its receipt, its events and their deliveries in one transaction. Nothing is
     * stored of what is not signed; where storing fails, the provider is asked to come again.
     */
    readonly receive: (
      body: Uint8Array,
      signatureHeader: string | undefined
    ) => Effect.Effect<Received, SignatureInvalid | ServiceUnavailable>
  }
>() {
  static readonly layer: Layer.Layer<Inbound, never, SqlClient.SqlClient | Provider | WakeUp> = Layer.effect(
    Inbound,
    Effect.gen(function* () {
      const provider = yield* Provider
      const wakeUp = yield* WakeUp
      const receipts = yield* makeReceiptsRepo

      const findContext = (environment: Environment, event: ProviderEvent) =>
        event.account === null
          ? Effect.succeed(undefined)
          : receipts.findContext(environment, event.account, soldItemsReference(event))

      const receive = Effect.fn("Inbound.receive")(function* (body: Uint8Array, signatureHeader: string | undefined) {
        const verified = yield* provider.verifyNotification(body, signatureHeader)
        const event = yield* Either.mapLeft(
          parseProviderEvent(verified.event),
          () => new SignatureInvalid({ message: "The notification is signed, but its body is not a provider's event." })
        )
        const context = yield* findContext(verified.environment, event)
        const consequence = consequenceOf(verified.environment, event, context)
        const stored = yield* receipts.insert({
          ...consequence,
          environment: verified.environment,
          providerEventId: event.id,
          accountId: event.account,
          type: event.type,
          livemode: event.livemode,
          providerCreatedAt: new Date(event.created * 1000),
          receivedAt: new Date(yield* Clock.currentTimeMillis),
          deauthorizes: event.type === deauthorization,
          traceparent: yield* currentTraceparent
        })
        const received: Received = stored ? consequence.outcome : "duplicate"
        yield* Effect.annotateCurrentSpan({
          "notification.id": event.id,
          "notification.type": event.type,
          "notification.outcome": received
        })
        if (stored && consequence.outcome === "delivered") {
          yield* wakeUp.announce
        }
        return received
      }, orNotStored)

      return { receive }
    })
  )
}

/**
 * Where storing fails the provider is asked to come again, whatever the reason (contract, What the service does, rule 8:
 * "If queuing fails, … answers 503"): a bug of ours may be mended by then.
 */
const orNotStored = <A, E, R>(
  effect: Effect.Effect<A, E | SqlError.SqlError, R>
): Effect.Effect<A, Exclude<E, SqlError.SqlError> | ServiceUnavailable, R> =>
  Effect.catchIf(
    effect,
    (error): error is Extract<E | SqlError.SqlError, SqlError.SqlError> => error instanceof SqlError.SqlError,
    (cause) =>
      Effect.zipRight(
        isUnavailable(cause) ? Effect.void : Effect.logError("A notification could not be stored: a bug", cause),
        new ServiceUnavailable({ cause })
      )
  )

/** The provider's word that an account gave our access back. Only an explicit new link connects it again. */
const deauthorization = "account.application.deauthorized"

interface Consequence extends Pick<NewReceipt, "outcome" | "organizationId" | "events"> {}

const nothing = (outcome: ReceiptOutcome, context?: InboundContext): Consequence => ({
  outcome,
  organizationId: context?.organizationId ?? null,
  events: []
})

/** What a verified event leads to. A disconnected account's news concerns nobody, until it is linked again. */
const consequenceOf = (
  environment: Environment,
  event: ProviderEvent,
  context: InboundContext | undefined
): Consequence => {
  if (event.livemode !== (environment === "production")) {
    return nothing("wrong_mode", context)
  }
  if (context === undefined || !context.connected) {
    return nothing("unlinked", context)
  }
  const { organizationId, soldItems } = context
  const translation = translate({ event, environment, organizationId, soldItems })
  switch (translation._tag) {
    case "Translated": {
      const events = withMilestone(translation.events, environment, event, context).map((envelope) =>
        toNewEvent(envelope, filterSubjects(event, soldItems), context)
      )
      const outcome = events.some(({ subscribers }) => subscribers.length > 0) ? "delivered" : "no_subscriber"
      return { outcome, organizationId, events }
    }
    case "Ignored":
      return nothing("ignored", context)
    case "WrongMode":
      return nothing("wrong_mode", context)
    case "Malformed":
      return nothing("malformed", context)
  }
}

/** The first payment of an account is told twice: as what it is, and as a milestone (contract, Events, rule 3). */
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

/** An event with the endpoints that subscribe to its type and whose filters it passes. */
const toNewEvent = (envelope: Envelope, subjects: FilterSubjects, { endpoints }: InboundContext): NewEvent => ({
  id: envelope.id,
  type: envelope.type,
  payload: encodeEnvelope(envelope),
  subscribers: endpoints.filter(
    ({ events, filters }) => events.includes(envelope.type) && passes(filters, { data: { ...envelope.data }, subjects })
  )
})

/** The current span's place in its trace, for the attempts to link to. */
const currentTraceparent = Effect.map(
  Effect.option(Effect.currentSpan),
  Option.match({ onNone: () => null, onSome: (span) => HttpTraceContext.toHeaders(span)["traceparent"] ?? null })
)
