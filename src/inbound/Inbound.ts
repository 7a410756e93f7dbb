import { SqlClient, type SqlError } from "@effect/sql"
import { Data, Effect, Either, type Fiber, Predicate } from "effect"
import { LocalHandOff } from "../engine/queue/Enqueue.ts"
import { WakeUp } from "../engine/queue/WakeUp.ts"
import type { SoldItemsReference } from "../events/EventReader.ts"
import {
  apiVersionOf,
  type Malformed,
  malformedAt,
  type ProviderEvent,
  parseProviderEvent
} from "../events/stripe/ProviderEvent.ts"
import { refundUpdateTypes, translatedProviderTypes } from "../events/stripe/Translate.ts"
import { CheckoutSessions } from "../payments/checkout-sessions/CheckoutSessions.ts"
import { Provider } from "../payments/Provider.ts"
import { ServiceUnavailable, SignatureInvalid } from "../platform/errors/Errors.ts"
import { flatMapSync, millisNow } from "../platform/kit/Concurrency.ts"
import type { Environment } from "../platform/kit/Environment.ts"
import type { OrganizationId } from "../platform/kit/Ids.ts"
import { service } from "../platform/kit/Service.ts"
import { isUnavailable, transaction } from "../platform/storage/Database.ts"
import { Metrics, type MetricsWriter } from "../platform/telemetry/Metrics.ts"
import { annotateFiber, spanned, traceparentOf } from "../platform/telemetry/Spans.ts"
import { makeAccountReports, type ReceiptBase } from "./AccountReports.ts"
import { type InboundContext, storable } from "./ContextStatement.ts"
import {
  classify,
  type Decision,
  type DecisionStep,
  type EnrichmentFailure,
  type Fetched,
  makeEnrichment,
  malformedDecision,
  nothing,
  nothingFetched,
  untilDecided
} from "./Decision.ts"
import { makeRecordFailedRefund } from "./FailedRefunds.ts"
import { makeInboundRepo, type TenantChanged } from "./InboundRepo.ts"
import type { MalformedPart, ReceiptOutcome } from "./Receipt.ts"
import { reportOf, type StoredReport } from "./ReceiptStatement.ts"
import { isAccountUpdate, type Notification, parseThinNotification, thinDeauthorization } from "./ThinNotification.ts"

/** A malformed part, with the known facts about its notification. */
interface MalformedReport extends MalformedPart {
  readonly environment: Environment
  /** Null if the notification itself is malformed. */
  readonly providerEventId: string | null
  /** The provider's event type; null if the notification itself is malformed. */
  readonly type: string | null
  readonly organizationId: OrganizationId | null
  /** The provider's API version of the payload. */
  readonly apiVersion: string | null
}

const messages: Readonly<Record<MalformedPart["part"], string>> = {
  event: "A notification of the provider is malformed and was refused: see the guide, Malformed notifications",
  object: "A notification is malformed, so it created no event: see the guide, Malformed notifications",
  account: "An account is malformed, so no event reported its status: see the guide, Malformed notifications",
  filters: "Fields that endpoints filter by are malformed, so they got nothing: see the guide, Malformed notifications"
}

const knownTypes: ReadonlySet<string> = new Set([
  ...translatedProviderTypes,
  ...refundUpdateTypes,
  "account.updated",
  "v1.account.updated",
  "v1.capability.updated",
  "v1.account.application.deauthorized"
])

/** Maps a type to one of few values, whatever the provider sends. */
const typeLabel = (type: string | null): string => {
  if (type === null) return ""
  if (knownTypes.has(type)) return type
  return type.startsWith("v2.core.account") ? "v2.core.account" : "other"
}

/** In the log and the metrics, containing only field paths and the provider's names. */
const reportTo =
  (metrics: MetricsWriter | null) =>
  ({ part, ...report }: MalformedReport): Effect.Effect<void> =>
    Effect.suspend(() => {
      metrics?.count("connected_payments.notification.malformed.count", [
        report.environment,
        typeLabel(report.type),
        part
      ])
      return Effect.logError(messages[part]).pipe(Effect.annotateLogs({ part, ...report }))
    })

export type Received = ReceiptOutcome | "duplicate"

type Receive = (
  body: Uint8Array,
  signatureHeader: string | undefined
) => Effect.Effect<Received, SignatureInvalid | ServiceUnavailable>

const makeParts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const provider = yield* Provider
  const sessions = yield* CheckoutSessions
  const wakeUp = yield* WakeUp
  const metrics = yield* Metrics
  const count = countedBy(metrics)
  const reportMalformed = reportTo(metrics)
  const receipts = yield* makeInboundRepo(yield* LocalHandOff)
  const { decide } = yield* makeEnrichment
  const accountReports = yield* makeAccountReports
  const recordFailedRefund = yield* makeRecordFailedRefund
  return {
    sql,
    provider,
    sessions,
    wakeUp,
    count,
    reportMalformed,
    receipts,
    decide,
    accountReports,
    recordFailedRefund
  }
})

type Parts = Effect.Effect.Success<typeof makeParts>

const makeStoring = ({ receipts, reportMalformed, wakeUp }: Parts) => {
  const contextOf = (
    environment: Environment,
    { account, id }: Notification,
    sold: SoldItemsReference | null,
    find = receipts.findContext
  ) =>
    account === null ? Effect.succeed(undefined) : find({ environment, providerEventId: id, accountId: account, sold })

  /** Stores a receipt with its decision. A cached context's version must still be the tenant's. */
  const store = (base: ReceiptBase, decision: Decision, version: InboundContext["version"]) =>
    Effect.map(
      version === null
        ? receipts.insert({ ...base, ...decision })
        : receipts.insertCached({ ...base, ...decision }, version),
      reportOf(decision)
    )

  const finish = (
    { environment, providerEventId, type }: ReceiptBase,
    organizationId: InboundContext["organizationId"] | null,
    apiVersion: string | null,
    { outcome, stored, malformedPart, waits }: StoredReport
  ): Effect.Effect<Received> =>
    Effect.withFiberRuntime((fiber) => {
      const received: Received = stored ? outcome : "duplicate"
      annotateFiber(fiber, { "notification.outcome": received })
      const announced = Effect.as(waits ? wakeUp.announce : Effect.void, received)
      if (!stored || malformedPart === null) return announced
      const reported = { ...malformedPart, environment, organizationId, providerEventId, type, apiVersion }
      return Effect.zipRight(reportMalformed(reported), announced)
    })

  return { contextOf, store, finish }
}

type Storing = ReturnType<typeof makeStoring>

const makeTake = ({ receipts }: Parts, { contextOf, finish, store }: Storing) => {
  const take = (
    environment: Environment,
    notification: Notification,
    handling: Handling
  ): Effect.Effect<Received, EnrichmentFailure | SqlError.SqlError> => {
    const lookUp = () =>
      takeBy(environment, notification, handling, receipts.findContext).pipe(
        // The account was unlinked or disconnected during the call to the provider: the retry classifies it as not
        // for us
        Effect.retry({ times: 1, while: ({ _tag }) => _tag === "ProviderAccountNotConnected" }),
        Effect.catchTag("TenantChanged", Effect.die)
      )
    return handling.mayUseCache
      ? Effect.catchAll(takeBy(environment, notification, handling, receipts.cachedContext), (error) =>
          error._tag === "TenantChanged" || error._tag === "ProviderAccountNotConnected" ? lookUp() : Effect.fail(error)
        )
      : lookUp()
  }

  /** Runs synchronously up to the first wait: the runtime's steps would cost more than the work in them. */
  const takeBy = (
    environment: Environment,
    notification: Notification,
    handling: Handling,
    find: typeof receipts.findContext
  ): Effect.Effect<Received, EnrichmentFailure | SqlError.SqlError | TenantChanged> =>
    Effect.withFiberRuntime((fiber) =>
      flatMapSync(contextOf(environment, notification, handling.sold, find), (context) => {
        const { apiVersion, isOfAccount, handle } = handling
        const classified = classify(environment, notification, context)
        // Ignore a deauthorization that is not for us: one from the other mode is not about this link
        const deauthorizes = classified._tag === "ForUs" && handling.deauthorizes
        const decision =
          classified._tag === "ForUs" || !isOfAccount || notification.account !== null
            ? classified
            : { ...classified, decision: withoutAccount(classified.decision) }
        const base = receiptOf(fiber, environment, notification, deauthorizes)
        return Effect.flatMap(
          decision._tag === "NotForUs"
            ? store(base, decision.decision, context?.version ?? null)
            : handle(base, decision.context),
          (report) => finish(base, context?.organizationId ?? null, apiVersion, report)
        )
      })
    )

  return take
}

const makeTakeSnapshot = ({ decide, provider, receipts, sql }: Parts, { contextOf, store }: Storing) => {
  /** In a transaction: endpoints and the account itself may have changed during the call to the provider. */
  const decideAgain = (base: ReceiptBase, event: ProviderEvent, { organizationId }: InboundContext, fetched: Fetched) =>
    receipts.lockAccount({ organizationId, environment: base.environment }).pipe(
      Effect.zipRight(contextOf(base.environment, event, provider.reader.soldItemsReference(event))),
      Effect.flatMap((context): Effect.Effect<DecisionStep<StoredReport>, SqlError.SqlError | TenantChanged> => {
        const classified = classify(base.environment, event, context)
        const attempt: DecisionStep<Decision> =
          classified._tag === "ForUs"
            ? decide(base.environment, event, classified.context, fetched)
            : { _tag: "Decided", value: classified.decision }
        return attempt._tag === "NeedsFetch"
          ? Effect.succeed(attempt)
          : Effect.map(store(base, attempt.value, null), (value) => ({ _tag: "Decided", value }))
      })
    )

  const takeSnapshot = (base: ReceiptBase, event: ProviderEvent, context: InboundContext) => {
    const attempt = decide(base.environment, event, context, nothingFetched)
    return attempt._tag === "Decided"
      ? store(base, attempt.value, context.version)
      : Effect.flatMap(attempt.fetch, (fetched) =>
          untilDecided((fetched) => transaction(sql)(decideAgain(base, event, context, fetched)), fetched)
        )
  }

  return takeSnapshot
}

const makeEntryFor = ({ count, reportMalformed }: Parts, take: ReturnType<typeof makeTake>) => {
  /** Refuses a malformed notification, so that the provider sends it again, and reports it to operators. */
  const refuseMalformed = (environment: Environment, input: unknown, { reason }: Malformed) =>
    Effect.zipRight(
      reportMalformed({
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

  const verifyAndTake = <N extends Notification>(
    { parse, handlingOf, verify }: Form<N>,
    body: Uint8Array,
    signatureHeader: string | undefined
  ) =>
    Effect.withFiberRuntime<Received, NotTaken>((fiber) =>
      Effect.flatMap(
        verify(body, signatureHeader),
        ({ environment, event: input }): Effect.Effect<Received, NotTaken> => {
          const parsed = parse(input)
          if (Either.isLeft(parsed)) return refuseMalformed(environment, input, parsed.left)
          // On each line of the log from here on, and on the span
          annotateFiber(fiber, { "notification.id": parsed.right.id, "notification.type": parsed.right.type })
          return environment === "sandbox" && parsed.right.livemode
            ? new LiveUnderSandboxSecret()
            : take(environment, parsed.right, handlingOf(parsed.right, input))
        }
      )
    )

  const entryFor = <N extends Notification>(name: string, form: Form<N>): Receive =>
    spanned(name, (body, signatureHeader) =>
      Effect.matchEffect(verifyAndTake(form, body, signatureHeader), {
        onSuccess: (received) => {
          count(received)
          return Effect.succeed(received)
        },
        onFailure: (error) => {
          count(outcomeOf(error))
          return notStored(error)
        }
      })
    )

  return entryFor
}

/**
 * Records the sale of a finished session, by which people find its payment; other events record none. Before the
 * receipt is stored: if it fails, the provider sends the notification again.
 */
const recordSale = (
  { provider, sessions }: Parts,
  { environment }: ReceiptBase,
  event: ProviderEvent,
  { organizationId }: InboundContext
): Effect.Effect<void, ServiceUnavailable> => {
  const sold = provider.reader.soldItemsReference(event)
  const { object } = event.data
  const text = (value: unknown) => (Predicate.isString(value) ? storable(value) : null)
  const [sessionId, paymentLinkId] = [text(sold?.sessionId), text(sold?.paymentLinkId)]
  if (sessionId === null) return Effect.void
  const paymentId = text(object["payment_intent"])
  const reference = text(object["client_reference_id"])
  const paid = object["payment_status"] !== "unpaid"
  return sessions.finish({ organizationId, environment }, { sessionId, paymentLinkId, paymentId, reference, paid })
}

const snapshotForm = (parts: Parts, storing: Storing): Form<ProviderEvent> => {
  const { accountReports, provider, recordFailedRefund } = parts
  const takeSnapshot = makeTakeSnapshot(parts, storing)
  return {
    verify: provider.verifyNotification,
    parse: parseProviderEvent,
    handlingOf: (event, input) => {
      const topic = provider.reader.topicOf(event.type)
      return {
        apiVersion: apiVersionOf(input),
        deauthorizes: topic === "deauthorization",
        isOfAccount: false,
        sold: provider.reader.soldItemsReference(event),
        mayUseCache: topic === "other",
        handle: (base, context) =>
          topic === "account"
            ? accountReports.receive(base, event, context)
            : topic === "refund"
              ? // Recorded before the receipt is stored: if that fails, the provider sends it again
                Effect.flatMap(recordFailedRefund(base.environment, event, context), (decision) =>
                  storing.store(base, decision, context.version)
                )
              : Effect.zipRight(recordSale(parts, base, event, context), takeSnapshot(base, event, context))
      }
    }
  }
}

const thinForm = ({ accountReports, provider }: Parts, { store }: Storing): Form<Notification> => ({
  verify: provider.verifyThinNotification,
  parse: parseThinNotification,
  handlingOf: (thin) => ({
    apiVersion: null,
    deauthorizes: thin.type === thinDeauthorization,
    isOfAccount: isAccountUpdate(thin.type) || thin.type === thinDeauthorization,
    sold: null,
    mayUseCache: false,
    handle: (base, context) =>
      isAccountUpdate(thin.type)
        ? accountReports.receive(base, thin, context)
        : store(base, nothing("ignored", context), null)
  })
})

const make = Effect.gen(function* () {
  const parts = yield* makeParts
  const storing = makeStoring(parts)
  const entryFor = makeEntryFor(parts, makeTake(parts, storing))

  return {
    /** The request header with a notification's signature, in lower case. */
    signatureHeader: parts.provider.signatureHeader,
    /** Refuses a notification by its signature header alone, before its body is read. */
    examine: (signatureHeader: string | undefined) =>
      Effect.tapError(parts.provider.checkSignatureHeader(signatureHeader), (error) =>
        Effect.sync(() => parts.count(outcomeOf(error)))
      ),
    /**
     * Verifies a notification and stores its receipt, its events and their deliveries in one transaction. Stores
     * nothing if the signature is invalid. If storing fails, or a required call to the provider fails, it fails so that
     * the provider sends the notification again.
     */
    receive: entryFor("Inbound.receive", snapshotForm(parts, storing)),
    /**
     * Like `receive`, for a thin notification. One about an account's status triggers a reading of the account, and one
     * about a deauthorization disconnects it; all others only get a receipt.
     */
    receiveThin: entryFor("Inbound.receiveThin", thinForm(parts, storing))
  }
})

/** Receives the provider's notifications (contract 11.2). */
export class Inbound extends service<Inbound>()("connected-payments/inbound/Inbound", make) {}

/**
 * A live event was signed with a sandbox secret: the secrets are configured wrongly. A 200 would lose the event, so the
 * provider has to retry until the settings are corrected.
 */
class LiveUnderSandboxSecret extends Data.TaggedError("LiveUnderSandboxSecret") {}

type NotTaken = SignatureInvalid | LiveUnderSandboxSecret | EnrichmentFailure | SqlError.SqlError

const outcomeOf = ({ _tag }: NotTaken): string =>
  _tag === "SignatureInvalid" ? "refused" : _tag === "LiveUnderSandboxSecret" ? "live_in_sandbox" : "not_stored"

interface Form<N extends Notification> {
  readonly verify: Provider["Type"]["verifyNotification"]
  /** Reads the parsed JSON. Never throws. */
  readonly parse: (input: unknown) => Either.Either<N, Malformed>
  readonly handlingOf: (notification: N, input: unknown) => Handling
}

/** Classifies as malformed, not unlinked, a notification that is about an account by its type but names none. */
const withoutAccount = (decision: Decision): Decision =>
  decision.outcome === "unlinked"
    ? malformedDecision("object", malformedAt(["event.related_object", "event.context"]))
    : decision

/** Counts notifications by outcome, if metrics are on. */
const countedBy =
  (metrics: MetricsWriter | null) =>
  (outcome: string): void =>
    metrics?.count("connected_payments.notification.count", [outcome])

const notAnEvent = () =>
  new SignatureInvalid({ message: "The notification is signed, but its body is not a provider's event." })

interface Handling {
  /** The provider's API version of the payload. */
  readonly apiVersion: string | null
  /** Whether the type is about an account, so that the notification has to name one. */
  readonly isOfAccount: boolean
  /** Whether the account revoked our access: only a new explicit link connects it again. */
  readonly deauthorizes: boolean
  /** The session or payment link whose items are looked up; null if it is not about one. */
  readonly sold: SoldItemsReference | null
  /** Whether a cached context will do: not for notifications about the account itself. */
  readonly mayUseCache: boolean
  readonly handle: (
    base: ReceiptBase,
    context: InboundContext
  ) => Effect.Effect<StoredReport, EnrichmentFailure | SqlError.SqlError | TenantChanged>
}

const receiptOf = (
  fiber: Fiber.RuntimeFiber<unknown, unknown>,
  environment: Environment,
  notification: Notification,
  deauthorizes: boolean
): ReceiptBase => ({
  environment,
  providerEventId: notification.id,
  accountId: notification.account,
  type: notification.type,
  livemode: notification.livemode,
  providerCreatedAt: new Date(notification.created * 1000),
  receivedAt: new Date(millisNow(fiber)),
  deauthorizes,
  traceparent: traceparentOf(fiber)
})

/** Fails, so that the provider sends it again (contract 11.2): a bug of ours may be fixed by then. */
const notStored = (error: NotTaken): Effect.Effect<never, SignatureInvalid | ServiceUnavailable> => {
  if (error._tag === "SignatureInvalid" || error._tag === "ServiceUnavailable") return Effect.fail(error)
  const unavailable = new ServiceUnavailable({ cause: error })
  if (error._tag === "LiveUnderSandboxSecret") {
    return Effect.zipRight(
      Effect.logError(
        "A live event was signed with a secret of PROVIDER_SANDBOX_WEBHOOK_SECRETS and was not stored: correct the secrets"
      ),
      unavailable
    )
  }
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
}
