import { SqlClient, type SqlError } from "@effect/sql"
import { Clock, Effect, Either, Predicate } from "effect"
import { matchEvent } from "../destinations/publishing/Publication.ts"
import type { SoldItemsReference } from "../events/EventReader.ts"
import { type ProviderEvent, parseProviderEvent } from "../events/stripe/ProviderEvent.ts"
import { Accounts } from "../payments/Accounts.ts"
import { supports } from "../payments/OwnProvider.ts"
import { Provider } from "../payments/Provider.ts"
import { makeAudit } from "../platform/kit/Audit.ts"
import type { Author, Tenant } from "../platform/kit/Tenant.ts"
import { transaction } from "../platform/storage/Database.ts"
import { makeAccountReports } from "./AccountReports.ts"
import type { InboundContext } from "./ContextStatement.ts"
import { type Decision, type Fetched, makeEnrichment, nothing, untilDecided } from "./Decision.ts"
import { makeRecordFailedRefund } from "./FailedRefunds.ts"
import { makeInboundRepo } from "./InboundRepo.ts"
import { type Receipt, type Replay, ReplayRefused } from "./Receipt.ts"
import { makeReceiptsRepo } from "./ReceiptsRepo.ts"
import type { Notification } from "./ThinNotification.ts"

const refusals = {
  wrong_mode: "The event is from the provider's other mode: nothing may be created from it",
  account_not_linked: "The event's account is not linked and connected in this environment",
  another_organization: "The event's account is linked to another organization by now",
  deliveries_expired:
    "The event was delivered, and its deliveries are no longer kept: it could reach an endpoint twice",
  event_expired: "The provider does not have the event any more; it keeps events for 30 days"
} as const

const refuse = (reason: keyof typeof refusals, cause?: unknown) =>
  new ReplayRefused({ reason, message: refusals[reason], ...(cause === undefined ? {} : { cause }) })

/** Refuses a malformed event and stores nothing: a later version may be able to read it. */
const refuseMalformed = (why: string) =>
  new ReplayRefused({ reason: "malformed", message: `This version can't read the event either: ${why}` })

const requireWellFormed = (decision: Decision): Effect.Effect<Decision, ReplayRefused> =>
  decision.outcome === "malformed"
    ? Effect.fail(refuseMalformed(decision.malformedPart?.reason ?? "its object"))
    : Effect.succeed(decision)

/** Whether its event reported a past state, which can't be read again: about an account, or by a thin notification. */
const isStatusReport = ({ provider }: Parts, { type }: Receipt): boolean =>
  provider.reader.topicOf(type) === "account" || (supports(provider, "verifyThinNotification") && /^v\d+\./.test(type))

const dataOf = (payload: string): Readonly<Record<string, unknown>> => {
  const envelope: unknown = JSON.parse(payload)
  return Predicate.hasProperty(envelope, "data") && Predicate.isReadonlyRecord(envelope.data) ? envelope.data : {}
}

const notificationOf = (receipt: Receipt): Notification => ({
  id: receipt.providerEventId,
  type: receipt.type,
  created: Math.floor(receipt.providerCreatedAt.getTime() / 1000),
  livemode: receipt.livemode,
  account: receipt.accountId
})

type Source = Pick<Receipt, "environment" | "providerEventId" | "organizationId" | "accountId">

type Store = (tenant: Tenant, decision: Decision) => Effect.Effect<Replay, ReplayRefused | SqlError.SqlError>

const makeParts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const provider = yield* Provider
  const accounts = yield* Accounts
  const audit = yield* makeAudit
  const receipts = yield* makeInboundRepo(null)
  const records = yield* makeReceiptsRepo
  const { decide } = yield* makeEnrichment
  const accountReports = yield* makeAccountReports
  const recordFailedRefund = yield* makeRecordFailedRefund
  const record = (tenant: Tenant, author: Author, providerEventId: string) =>
    audit({ ...tenant, author, action: "receipt.replayed", targetType: "receipt", targetId: providerEventId })
  return { sql, provider, accounts, audit, receipts, records, decide, accountReports, recordFailedRefund, record }
})

type Parts = Effect.Effect.Success<typeof makeParts>

/** Fetches a snapshot event of a tenant's account from the provider, which keeps it for 30 days. */
const makeFetchEvent = ({ accounts, provider }: Parts) =>
  Effect.fnUntraced(function* (tenant: Tenant, providerEventId: string) {
    return yield* accounts
      .use(tenant, (account) =>
        // Fetched on the account's behalf, the event may not name the account
        Effect.map(provider.retrieveEvent(account, providerEventId), (event) => ({
          ...event,
          account: account.accountId
        }))
      )
      .pipe(Effect.catchTag("ProviderObjectNotFound", (cause) => refuse("event_expired", cause)))
  })

const parsed = (event: unknown) => Either.mapLeft(parseProviderEvent(event), ({ reason }) => refuseMalformed(reason))

const makeContextOf = ({ receipts }: Parts) =>
  Effect.fnUntraced(function* (
    { accountId, environment, organizationId, providerEventId }: Source,
    sold: SoldItemsReference | null
  ) {
    const context =
      accountId === null ? undefined : yield* receipts.findContext({ environment, providerEventId, accountId, sold })
    if (context === undefined || !context.connected) {
      return yield* refuse("account_not_linked")
    }
    return organizationId !== null && organizationId !== context.organizationId
      ? yield* refuse("another_organization")
      : context
  })

const makeStores = ({ receipts, record, records }: Parts) => {
  const storeMissing =
    (receipt: Receipt, author: Author): Store =>
    (tenant, decision) =>
      Effect.gen(function* () {
        const { made, outcome } = yield* records.insertMissing(tenant, receipt, decision)
        const changed = made.length > 0 || outcome !== receipt.outcome
        if (changed) {
          yield* record(tenant, author, receipt.providerEventId)
        }
        return {
          changed,
          outcome,
          deliveriesMade: made.length,
          events: decision.events.map(({ id, type }) => ({
            id,
            type,
            deliveriesMade: made.filter((eventId) => eventId === id).length
          }))
        }
      })

  /** Stores an event as its notification would have been. If that arrives later, it counts as a copy. */
  const storeLost =
    (event: ProviderEvent, author: Author | null): Store =>
    (tenant, decision) =>
      Effect.gen(function* () {
        if (decision.outcome === "unlinked") {
          return yield* refuse("account_not_linked")
        }
        const { first, outcome } = yield* receipts.insert({
          environment: tenant.environment,
          providerEventId: event.id,
          accountId: event.account,
          type: event.type,
          livemode: event.livemode,
          providerCreatedAt: new Date(event.created * 1000),
          receivedAt: new Date(yield* Clock.currentTimeMillis),
          deauthorizes: false,
          traceparent: null,
          ...decision
        })
        if (first) {
          yield* records.markReconciled(tenant.environment, event.id)
          if (author !== null) yield* record(tenant, author, event.id)
        }
        const events = decision.events.map(({ id, matching, type }) => ({
          id,
          type,
          deliveriesMade: first ? matching.filter(({ active }) => active).length : 0
        }))
        const deliveriesMade = events.reduce((sum, { deliveriesMade }) => sum + deliveriesMade, 0)
        return { changed: first, outcome, deliveriesMade, events }
      })

  return { storeMissing, storeLost }
}

const makeReplaySnapshot = (
  { decide, provider: { reader }, receipts, sql, recordFailedRefund }: Parts,
  contextOf: ReturnType<typeof makeContextOf>
) => {
  /** In a transaction: decides again, since the context may have changed during the call to the provider. */
  const decideAndStore = Effect.fnUntraced(function* (
    source: Source,
    event: ProviderEvent,
    store: Store,
    fetched: Fetched
  ) {
    const { organizationId } = yield* contextOf(source, null)
    const tenant = { organizationId, environment: source.environment }
    yield* receipts.lockAccount(tenant)
    const context = yield* contextOf({ ...source, organizationId }, reader.soldItemsReference(event))
    const attempt = decide(tenant.environment, event, context, fetched)
    if (attempt._tag === "NeedsFetch") return attempt
    return { _tag: "Decided", value: yield* store(tenant, yield* requireWellFormed(attempt.value)) } as const
  })

  const replaySnapshot = Effect.fnUntraced(function* (
    source: Source,
    event: ProviderEvent,
    context: InboundContext,
    store: Store
  ) {
    if (reader.topicOf(event.type) === "refund") {
      yield* Effect.flatMap(recordFailedRefund(source.environment, event, context), requireWellFormed)
    }
    return yield* untilDecided((fetched) => transaction(sql)(decideAndStore(source, event, store, fetched)))
  })

  return replaySnapshot
}

/** Once its deliveries are removed, there is no record of which endpoints got them. */
const makeRequireDeliveries =
  ({ records }: Parts) =>
  (receipt: Receipt, tenant: Tenant) =>
    receipt.outcome !== "delivered"
      ? Effect.void
      : Effect.flatMap(records.storedEvents(tenant, receipt), (events) =>
          events.length === 0 ? refuse("deliveries_expired") : Effect.void
        )

const makeReplayStored = ({ records, sql }: Parts) =>
  Effect.fnUntraced(function* (receipt: Receipt, tenant: Tenant, context: InboundContext, store: Store) {
    const stored = yield* records.storedEvents(tenant, receipt)
    const events = stored.map((event) => matchEvent({ ...event, data: dataOf(event.payload) }, context.endpoints))
    return yield* transaction(sql)(store(tenant, { ...nothing(receipt.outcome, context), events }))
  })

/** Reads the account again, as for a notification: what the event says may be outdated. */
const makeReplayReading =
  ({ accountReports, sql }: Parts) =>
  (notification: Notification, tenant: Tenant, context: InboundContext, store: Store) =>
    Effect.map(
      accountReports.repeat(
        (decision) =>
          requireWellFormed(decision).pipe(
            Effect.flatMap((readable) => transaction(sql)(store(tenant, readable))),
            Effect.map((replay) => ({ stored: replay.changed, replay }))
          ),
        notification,
        tenant,
        context
      ),
      ({ replay }) => replay
    )

/** Replays receipts, and stores events that left none; see `Receipts.replay`. */
export const makeReplay = Effect.gen(function* () {
  const parts = yield* makeParts
  const fetchEvent = makeFetchEvent(parts)
  const contextOf = makeContextOf(parts)
  const stores = makeStores(parts)
  const replaySnapshot = makeReplaySnapshot(parts, contextOf)
  const requireDeliveries = makeRequireDeliveries(parts)
  const replayStored = makeReplayStored(parts)
  const replayReading = makeReplayReading(parts)

  return {
    replay: Effect.fnUntraced(function* (receipt: Receipt, author: Author) {
      if (receipt.outcome === "wrong_mode") {
        return yield* refuse("wrong_mode")
      }
      const context = yield* contextOf(receipt, null)
      const tenant = { organizationId: context.organizationId, environment: receipt.environment }
      const store = stores.storeMissing(receipt, author)
      if (!isStatusReport(parts, receipt)) {
        yield* requireDeliveries(receipt, tenant)
        return yield* replaySnapshot(
          receipt,
          yield* parsed(yield* fetchEvent(tenant, receipt.providerEventId)),
          context,
          store
        )
      }
      // A malformed notification was never reported
      return receipt.outcome === "malformed"
        ? yield* replayReading(notificationOf(receipt), tenant, context, store)
        : yield* replayStored(receipt, tenant, context, store)
    }),

    fetchEvent,

    /** Stores an event that left no receipt, as the provider has it. Without an author, nothing is audited. */
    takeIn: Effect.fnUntraced(function* (tenant: Tenant, found: unknown, author: Author | null) {
      const event = yield* parsed(found)
      if (event.livemode !== (tenant.environment === "production")) {
        return yield* refuse("wrong_mode")
      }
      const source = { ...tenant, providerEventId: event.id, accountId: event.account }
      const context = yield* contextOf(source, null)
      const store = stores.storeLost(event, author)
      return parts.provider.reader.topicOf(event.type) === "account"
        ? yield* replayReading(event, tenant, context, store)
        : yield* replaySnapshot(source, event, context, store)
    })
  }
})
