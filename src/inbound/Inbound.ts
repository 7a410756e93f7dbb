import type { SqlClient, SqlError } from "@effect/sql"
import { Clock, Context, Effect, Either, Layer } from "effect"
import { WakeUp } from "../deliveries/WakeUp.ts"
import { ServiceUnavailable, SignatureInvalid } from "../Errors.ts"
import { parseProviderEvent, type SoldItemsReference, soldItemsReference } from "../events/Translate.ts"
import { Metrics, type MetricsWriter } from "../kit/Metrics.ts"
import { annotateSpan, currentTraceparent, spanned } from "../kit/Spans.ts"
import type { Accounts } from "../provider/Accounts.ts"
import type { CheckoutSessions } from "../provider/CheckoutSessions.ts"
import { Provider } from "../provider/Provider.ts"
import type { Environment } from "../Settings.ts"
import { isUnavailable } from "../storage/Database.ts"
import { makeAccountReports, type ReceiptBase, type StoredReport } from "./AccountReports.ts"
import { type CompletionFailure, makeCompletion } from "./Completion.ts"
import { type Consequence, judge, nothing } from "./Consequences.ts"
import type { ReceiptOutcome } from "./Receipt.ts"
import { type InboundContext, makeReceiptsRepo } from "./ReceiptsRepo.ts"
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

      const settle = ({ id, type }: Notification, { outcome, stored }: StoredReport): Effect.Effect<Received> => {
        const received: Received = stored ? outcome : "duplicate"
        const annotated = annotateSpan({
          "notification.id": id,
          "notification.type": type,
          "notification.outcome": received
        })
        return Effect.as(
          stored && outcome === "delivered" ? Effect.zipRight(annotated, wakeUp.announce) : annotated,
          received
        )
      }

      /** Judges a notification and stores what it leads to; `lead` says that where it concerns somebody. */
      const take = (
        environment: Environment,
        notification: Notification,
        { deauthorization, lead, sold }: Taking
      ): Effect.Effect<Received, CompletionFailure | SqlError.SqlError> =>
        Effect.flatMap(contextOf(environment, notification, sold), (context) => {
          const judged = judge(environment, notification, context)
          // What concerns nobody changes nothing: the other mode's word of an account's end is not about this link
          const deauthorizes = judged._tag === "Concern" && notification.type === deauthorization
          return receiptOf(environment, notification, deauthorizes).pipe(
            Effect.flatMap((base) =>
              judged._tag === "NoConcern" ? store(base, judged.consequence) : lead(base, judged.context)
            ),
            Effect.flatMap((report) => settle(notification, report))
          )
        })

      const receive = spanned("Inbound.receive", (body: Uint8Array, signatureHeader: string | undefined) =>
        orNotStored(
          Effect.flatMap(provider.verifyNotification(body, signatureHeader), ({ environment, event: parsed }) =>
            Effect.flatMap(Either.mapLeft(parseProviderEvent(parsed), notAnEvent), (event) =>
              take(environment, event, {
                deauthorization: snapshotDeauthorization,
                sold: soldItemsReference(event),
                lead: (base, context) =>
                  event.type === "account.updated"
                    ? reportAccount(base, event, context)
                    : Effect.flatMap(complete(environment, event, context), (consequence) => store(base, consequence))
              })
            )
          )
        )
      )

      const receiveThin = spanned("Inbound.receiveThin", (body: Uint8Array, signatureHeader: string | undefined) =>
        orNotStored(
          Effect.flatMap(provider.verifyThinNotification(body, signatureHeader), ({ environment, event: parsed }) =>
            Effect.flatMap(Either.mapLeft(parseThinNotification(parsed), notAnEvent), (thin) =>
              take(environment, thin, {
                deauthorization: thinDeauthorization,
                sold: null,
                lead: (base, context) =>
                  isAccountNews(thin.type)
                    ? reportAccount(base, thin, context)
                    : store(base, nothing("ignored", context))
              })
            )
          )
        )
      )

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

/** What is particular to snapshot and to thin notifications. */
interface Taking {
  /** The type that is the provider's word that an account gave our access back. */
  readonly deauthorization: string
  /** Where to look for what its session sells. */
  readonly sold: SoldItemsReference | null
  /** Stores what a notification that concerns somebody leads to. */
  readonly lead: (
    base: ReceiptBase,
    context: InboundContext
  ) => Effect.Effect<StoredReport, CompletionFailure | SqlError.SqlError>
}

/** What a receipt says of the notification itself, as it arrives now. */
const receiptOf = (
  environment: Environment,
  notification: Notification,
  deauthorizes: boolean
): Effect.Effect<ReceiptBase> =>
  Effect.zipWith(Clock.currentTimeMillis, currentTraceparent, (now, traceparent) => ({
    environment,
    providerEventId: notification.id,
    accountId: notification.account,
    type: notification.type,
    livemode: notification.livemode,
    providerCreatedAt: new Date(notification.created * 1000),
    receivedAt: new Date(now),
    deauthorizes,
    traceparent
  }))

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
const snapshotDeauthorization = "account.application.deauthorized"
