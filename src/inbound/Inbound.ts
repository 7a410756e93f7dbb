import { SqlClient, type SqlError } from "@effect/sql"
import { Clock, Context, Effect, Either, Layer } from "effect"
import { ServiceUnavailable, SignatureInvalid } from "../errors/Errors.ts"
import type { Environment } from "../events/Environment.ts"
import { apiVersionOf, type Malformed, malformedAt } from "../events/stripe/ProviderEvent.ts"
import {
  type ProviderEvent,
  parseProviderEvent,
  type SoldItemsReference,
  soldItemsReference
} from "../events/stripe/Translate.ts"
import type { Accounts } from "../provider/Accounts.ts"
import type { CheckoutSessions } from "../provider/checkout/CheckoutSessions.ts"
import { Provider } from "../provider/Provider.ts"
import { HandOver } from "../publishing/HandOver.ts"
import { WakeUp } from "../publishing/WakeUp.ts"
import { isUnavailable, transaction } from "../storage/Database.ts"
import { Metrics, type MetricsWriter } from "../telemetry/Metrics.ts"
import { annotateSpan, currentTraceparent, spanned } from "../telemetry/Spans.ts"
import { makeAccountReports, type ReceiptBase, type StoredReport } from "./AccountReports.ts"
import {
  type Attempt,
  type CompletionFailure,
  type Fetched,
  makeCompletion,
  nothingFetched,
  untilConcluded
} from "./Completion.ts"
import { type Consequence, judge, nothing, unreadable } from "./Consequences.ts"
import type { InboundContext } from "./ContextStatement.ts"
import type { ReceiptOutcome } from "./Receipt.ts"
import { makeReceiptsRepo, type TenantChanged } from "./ReceiptsRepo.ts"
import { isAccountNews, type Notification, parseThinNotification, thinDeauthorization } from "./ThinNotification.ts"
import { makeUnreadableReports } from "./Unreadable.ts"

/** What became of a notification: `duplicate` if it was already known. */
export type Received = ReceiptOutcome | "duplicate"

type Receive = (
  body: Uint8Array,
  signatureHeader: string | undefined
) => Effect.Effect<Received, SignatureInvalid | ServiceUnavailable>

/** The provider's notifications (contract 11.2). */
export class Inbound extends Context.Tag("connected-payments/inbound/Inbound")<
  Inbound,
  {
    /**
     * Verifies a notification and stores its receipt, its events and their deliveries in one transaction. Nothing is
     * stored of what is not signed; if storing fails, or the provider has to be asked and does not answer, the provider
     * is asked to send the notification again.
     */
    readonly receive: Receive
    /**
     * The same for a thin notification. Those about an account's status lead to a reading of the account, one saying
     * that access was given back disconnects it; all others get a receipt and nothing more.
     */
    readonly receiveThin: Receive
  }
>() {
  static readonly layer: Layer.Layer<
    Inbound,
    never,
    SqlClient.SqlClient | Provider | Accounts | CheckoutSessions | WakeUp | HandOver
  > = Layer.effect(
    Inbound,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const provider = yield* Provider
      const wakeUp = yield* WakeUp
      const counted = countedBy(yield* Metrics)
      const reportUnreadable = yield* makeUnreadableReports
      const receipts = yield* makeReceiptsRepo(yield* HandOver)
      const { conclude } = yield* makeCompletion
      const accountReports = yield* makeAccountReports

      const contextOf = (
        environment: Environment,
        { account, id }: Notification,
        sold: SoldItemsReference | null,
        find = receipts.findContext
      ) =>
        account === null
          ? Effect.succeed(undefined)
          : find({ environment, providerEventId: id, accountId: account, sold })

      /** Stores a receipt with what the notification leads to in this context. */
      const store = (base: ReceiptBase, consequence: Consequence, version: InboundContext["version"]) =>
        Effect.map(
          version === null
            ? receipts.insert({ ...base, ...consequence })
            : receipts.insertRecalled({ ...base, ...consequence }, version),
          ({ first, outcome, waits }): StoredReport => ({
            outcome,
            stored: first,
            waits,
            unreadable: consequence.unreadable
          })
        )

      /** Notifies all who must know of what was stored: workers, the trace, and operators about what can't be read. */
      const settle = (
        { environment, providerEventId, type }: ReceiptBase,
        organizationId: InboundContext["organizationId"] | null,
        apiVersion: string | null,
        { outcome, stored, unreadable, waits }: StoredReport
      ): Effect.Effect<Received> => {
        const received: Received = stored ? outcome : "duplicate"
        const annotated = annotateSpan({
          "notification.id": providerEventId,
          "notification.type": type,
          "notification.outcome": received
        })
        const reported =
          stored && unreadable !== null
            ? Effect.zipRight(
                annotated,
                reportUnreadable({ ...unreadable, environment, organizationId, providerEventId, type, apiVersion })
              )
            : annotated
        return Effect.as(waits ? Effect.zipRight(reported, wakeUp.announce) : reported, received)
      }

      /** Judges a notification and stores what it leads to; if it concerns somebody, `lead` says what that is. */
      const take = (
        environment: Environment,
        notification: Notification,
        taking: Taking
      ): Effect.Effect<Received, CompletionFailure | SqlError.SqlError> => {
        const lookedUp = takeBy(environment, notification, taking, receipts.findContext).pipe(
          // The account was unlinked or disconnected while the provider was asked: at a second look, it is no concern
          Effect.retry({ times: 1, while: ({ _tag }) => _tag === "ProviderAccountNotConnected" }),
          Effect.catchTag("TenantChanged", Effect.die)
        )
        if (!taking.recalls) return lookedUp
        return takeBy(environment, notification, taking, receipts.recallContext).pipe(
          Effect.catchTags({ TenantChanged: () => lookedUp, ProviderAccountNotConnected: () => lookedUp })
        )
      }

      const takeBy = (
        environment: Environment,
        notification: Notification,
        { apiVersion, deauthorization, isOfAccount, lead, sold }: Taking,
        find: typeof receipts.findContext
      ): Effect.Effect<Received, CompletionFailure | SqlError.SqlError | TenantChanged> =>
        Effect.flatMap(contextOf(environment, notification, sold, find), (context) => {
          const judged = judge(environment, notification, context)
          // What concerns nobody changes nothing: the account's end in the other mode is not about this link
          const deauthorizes = judged._tag === "Concern" && notification.type === deauthorization
          const consequence =
            judged._tag === "Concern" || !isOfAccount || notification.account !== null
              ? judged
              : { ...judged, consequence: withoutAccount(judged.consequence) }
          return Effect.flatMap(receiptOf(environment, notification, deauthorizes), (base) =>
            Effect.flatMap(
              consequence._tag === "NoConcern"
                ? store(base, consequence.consequence, context?.version ?? null)
                : lead(base, consequence.context),
              (report) => settle(base, context?.organizationId ?? null, apiVersion, report)
            )
          )
        })

      const concludeAndStore = (
        base: ReceiptBase,
        event: ProviderEvent,
        context: InboundContext,
        fetched: Fetched
      ): Effect.Effect<Attempt<StoredReport>, SqlError.SqlError | TenantChanged> => {
        const attempt = conclude(base.environment, event, context, fetched)
        return attempt._tag === "Lacking"
          ? Effect.succeed(attempt)
          : Effect.map(store(base, attempt.value, context.version), (value) => ({ _tag: "Concluded", value }))
      }

      /** In a transaction: endpoints and the account itself may have changed while the provider was asked. */
      const concludeAnew = (
        base: ReceiptBase,
        event: ProviderEvent,
        { organizationId }: InboundContext,
        fetched: Fetched
      ): Effect.Effect<Attempt<StoredReport>, SqlError.SqlError | TenantChanged> =>
        receipts.lockAccount({ organizationId, environment: base.environment }).pipe(
          Effect.zipRight(contextOf(base.environment, event, soldItemsReference(event))),
          Effect.map((context) => judge(base.environment, event, context)),
          Effect.flatMap((judged) =>
            judged._tag === "Concern"
              ? concludeAndStore(base, event, judged.context, fetched)
              : Effect.map(store(base, judged.consequence, null), (value) => ({ _tag: "Concluded", value }))
          )
        )

      const takeSnapshot = (base: ReceiptBase, event: ProviderEvent, context: InboundContext) =>
        untilConcluded((fetched) =>
          fetched === nothingFetched
            ? concludeAndStore(base, event, context, fetched)
            : transaction(sql)(concludeAnew(base, event, context, fetched))
        )

      /** A signed body that can't be read is refused, so that it is sent again; an operator has to know about it. */
      const readable = <A>(environment: Environment, input: unknown, parsed: Either.Either<A, Malformed>) =>
        Either.match(parsed, {
          onRight: Effect.succeed,
          onLeft: ({ reason }) =>
            Effect.zipRight(
              reportUnreadable({
                part: "event",
                reason,
                environment,
                organizationId: null,
                providerEventId: null,
                type: null,
                apiVersion: apiVersionOf(input)
              }),
              notAnEvent()
            )
        })

      const receive = spanned("Inbound.receive", (body: Uint8Array, signatureHeader: string | undefined) =>
        orNotStored(
          Effect.flatMap(provider.verifyNotification(body, signatureHeader), ({ environment, event: input }) =>
            Effect.flatMap(readable(environment, input, parseProviderEvent(input)), (event) =>
              take(environment, event, {
                apiVersion: apiVersionOf(input),
                deauthorization: snapshotDeauthorization,
                isOfAccount: false,
                sold: soldItemsReference(event),
                recalls: !event.type.startsWith("account."),
                lead: (base, context) =>
                  event.type === "account.updated"
                    ? accountReports.receive(base, event, context)
                    : takeSnapshot(base, event, context)
              })
            )
          )
        )
      )

      const receiveThin = spanned("Inbound.receiveThin", (body: Uint8Array, signatureHeader: string | undefined) =>
        orNotStored(
          Effect.flatMap(provider.verifyThinNotification(body, signatureHeader), ({ environment, event: input }) =>
            Effect.flatMap(readable(environment, input, parseThinNotification(input)), (thin) =>
              take(environment, thin, {
                apiVersion: null,
                deauthorization: thinDeauthorization,
                isOfAccount: isAccountNews(thin.type) || thin.type === thinDeauthorization,
                sold: null,
                recalls: false,
                lead: (base, context) =>
                  isAccountNews(thin.type)
                    ? accountReports.receive(base, thin, context)
                    : store(base, nothing("ignored", context), null)
              })
            )
          )
        )
      )

      return { receive: counted(receive), receiveThin: counted(receiveThin) }
    })
  )
}

/** What is about an account by its type but names none is not an unknown account's: it can't be read. */
const withoutAccount = (consequence: Consequence): Consequence =>
  consequence.outcome === "unlinked"
    ? unreadable("object", malformedAt(["event.related_object", "event.context"]))
    : consequence

/** Counts what becomes of notifications, if metrics are on. */
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

/** What differs between snapshot and thin notifications. */
interface Taking {
  /** The version that its payload was made for. */
  readonly apiVersion: string | null
  /** Whether its type says that it is about an account, so that it has to name one. */
  readonly isOfAccount: boolean
  /** The type with which the provider says that an account gave our access back. */
  readonly deauthorization: string
  /** Where to look for what its session sells. */
  readonly sold: SoldItemsReference | null
  /** Whether what was looked up for another notification is good enough: not for news of the account itself. */
  readonly recalls: boolean
  /** Stores what a notification that concerns somebody leads to. */
  readonly lead: (
    base: ReceiptBase,
    context: InboundContext
  ) => Effect.Effect<StoredReport, CompletionFailure | SqlError.SqlError | TenantChanged>
}

/** What a receipt says about the notification itself, as it arrives now. */
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
 * If storing fails, or the provider does not answer, the provider is asked to send the notification again, whatever the
 * reason (contract 11.2): a bug of ours may be mended by then.
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

/** The type that says that an account gave our access back. Only a new explicit link connects it again. */
const snapshotDeauthorization = "account.application.deauthorized"
