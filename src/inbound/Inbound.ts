import type { SqlClient, SqlError } from "@effect/sql"
import { Clock, Context, Effect, Either, Layer } from "effect"
import { WakeUp } from "../deliveries/WakeUp.ts"
import { ServiceUnavailable, SignatureInvalid } from "../Errors.ts"
import { parseProviderEvent, type SoldItemsReference, soldItemsReference } from "../events/Translate.ts"
import { Metrics, type MetricsWriter } from "../kit/Metrics.ts"
import { annotateSpan, currentTraceparent } from "../kit/Spans.ts"
import type { Accounts } from "../provider/Accounts.ts"
import type { CheckoutSessions } from "../provider/CheckoutSessions.ts"
import { Provider } from "../provider/Provider.ts"
import type { Environment } from "../Settings.ts"
import { isUnavailable } from "../storage/Database.ts"
import { makeAccountReports, type ReceiptBase, type StoredReport } from "./AccountReports.ts"
import { type CompletionFailure, makeCompletion } from "./Completion.ts"
import { type Consequence, judge, nothing } from "./Consequences.ts"
import type { ReceiptOutcome } from "./Receipt.ts"
import { makeReceiptsRepo } from "./ReceiptsRepo.ts"
import { isAccountNews, type Notification, parseThinNotification, thinDeauthorization } from "./ThinNotification.ts"

/** What became of a notification: `duplicate` where it was known already. */
export type Received = ReceiptOutcome | "duplicate"

type Receive = (
  body: Uint8Array,
  signatureHeader: string | undefined
) => Effect.Effect<Received, SignatureInvalid | ServiceUnavailable>

/** The provider's notifications (contract, What the service does, rule 8). */
export class Inbound extends Context.Tag("connected-payments/inbound/Inbound")<
  Inbound,
  {
    /**
     * Verifies a notification and stores its receipt, its events and their deliveries in one transaction. Nothing is
     * stored of what is not signed; where storing fails, or the provider has to be asked and does not answer, it is asked
     * to come again.
     */
    readonly receive: Receive
    /**
     * The same for a thin notification. Those about an account's status lead to a reading of the account, one that access
     * was given back disconnects it; of all others there is a receipt and nothing more.
     */
    readonly receiveThin: Receive
  }
>() {
  static readonly layer: Layer.Layer<
    Inbound,
    never,
    SqlClient.SqlClient | Provider | Accounts | CheckoutSessions | WakeUp
  > = Layer.effect(
    Inbound,
    Effect.gen(function* () {
      const provider = yield* Provider
      const wakeUp = yield* WakeUp
      const counted = countedBy(yield* Metrics)
      const receipts = yield* makeReceiptsRepo
      const complete = yield* makeCompletion
      const reportAccount = yield* makeAccountReports

      const contextOf = (environment: Environment, { account, id }: Notification, sold: SoldItemsReference | null) =>
        account === null
          ? Effect.succeed(undefined)
          : receipts.findContext({ environment, providerEventId: id, accountId: account, sold })

      /** Stores a receipt with what the notification leads to. */
      const store = (base: ReceiptBase, consequence: Consequence) =>
        Effect.map(receipts.insert({ ...base, ...consequence }), (stored) => ({ outcome: consequence.outcome, stored }))

      const settle = Effect.fnUntraced(function* ({ id, type }: Notification, { outcome, stored }: StoredReport) {
        const received: Received = stored ? outcome : "duplicate"
        yield* annotateSpan({
          "notification.id": id,
          "notification.type": type,
          "notification.outcome": received
        })
        if (stored && outcome === "delivered") {
          yield* wakeUp.announce
        }
        return received
      })

      const receive = Effect.fn("Inbound.receive")(function* (body: Uint8Array, signatureHeader: string | undefined) {
        const { environment, event: parsed } = yield* provider.verifyNotification(body, signatureHeader)
        const event = yield* Either.mapLeft(parseProviderEvent(parsed), notAnEvent)
        const judged = judge(environment, event, yield* contextOf(environment, event, soldItemsReference(event)))
        const base = yield* receiptOf(environment, event, deauthorization)
        if (judged._tag === "NoConcern") {
          return yield* settle(event, yield* store(base, judged.consequence))
        }
        const report =
          event.type === "account.updated"
            ? yield* reportAccount(base, event, judged.context)
            : yield* store(base, yield* complete(environment, event, judged.context))
        return yield* settle(event, report)
      }, orNotStored)

      const receiveThin = Effect.fn("Inbound.receiveThin")(function* (
        body: Uint8Array,
        signatureHeader: string | undefined
      ) {
        const { environment, event: parsed } = yield* provider.verifyThinNotification(body, signatureHeader)
        const thin = yield* Either.mapLeft(parseThinNotification(parsed), notAnEvent)
        const judged = judge(environment, thin, yield* contextOf(environment, thin, null))
        const base = yield* receiptOf(environment, thin, thinDeauthorization)
        if (judged._tag === "NoConcern") {
          return yield* settle(thin, yield* store(base, judged.consequence))
        }
        const report = isAccountNews(thin.type)
          ? yield* reportAccount(base, thin, judged.context)
          : yield* store(base, nothing("ignored", judged.context))
        return yield* settle(thin, report)
      }, orNotStored)

      return { receive: counted(receive), receiveThin: counted(receiveThin) }
    })
  )
}

/** Counts what becomes of notifications, where metrics are on. */
const countedBy =
  (metrics: MetricsWriter | null) =>
  (receive: Receive): Receive =>
    metrics === null
      ? receive
      : (body, signatureHeader) => {
          const count = (outcome: string) =>
            Effect.sync(() => metrics.count("connected_payments.notification.count", [outcome]))
          return Effect.tapBoth(receive(body, signatureHeader), {
            onSuccess: count,
            onFailure: ({ _tag }) => count(_tag === "SignatureInvalid" ? "refused" : "not_stored")
          })
        }

const notAnEvent = () =>
  new SignatureInvalid({ message: "The notification is signed, but its body is not a provider's event." })

/** What a receipt says of the notification itself, as it arrives now. */
const receiptOf = Effect.fnUntraced(function* (
  environment: Environment,
  notification: Notification,
  deauthorization: string
) {
  return {
    environment,
    providerEventId: notification.id,
    accountId: notification.account,
    type: notification.type,
    livemode: notification.livemode,
    providerCreatedAt: new Date(notification.created * 1000),
    receivedAt: new Date(yield* Clock.currentTimeMillis),
    deauthorizes: notification.type === deauthorization,
    traceparent: yield* currentTraceparent
  } satisfies ReceiptBase
})

/**
 * Where storing fails, or the provider does not answer, it is asked to come again, whatever the reason (contract, What
 * the service does, rule 8: "If queuing fails, … answers 503"): a bug of ours may be mended by then, and an account that
 * turned out to be disconnected is recorded as that.
 */
const orNotStored = <A, R>(
  effect: Effect.Effect<A, SignatureInvalid | CompletionFailure | SqlError.SqlError, R>
): Effect.Effect<A, SignatureInvalid | ServiceUnavailable, R> =>
  Effect.catchAll(effect, (error) => {
    if (error._tag === "SignatureInvalid" || error._tag === "ServiceUnavailable") {
      return Effect.fail(error)
    }
    const unavailable = new ServiceUnavailable({ cause: error })
    if (error._tag !== "SqlError") {
      return Effect.zipRight(
        Effect.logWarning("A notification was not stored: the provider could not be asked", error),
        unavailable
      )
    }
    return Effect.zipRight(
      isUnavailable(error) ? Effect.void : Effect.logError("A notification could not be stored: a bug", error),
      unavailable
    )
  })

/** The provider's word that an account gave our access back. Only an explicit new link connects it again. */
const deauthorization = "account.application.deauthorized"
