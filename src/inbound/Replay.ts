import { SqlClient } from "@effect/sql"
import { Effect, Predicate } from "effect"
import { matchEvent } from "../destinations/publishing/Publication.ts"
import { type ProviderEvent, type SoldItemsReference, soldItemsReference } from "../events/stripe/Translate.ts"
import { makeAudit } from "../platform/kit/Audit.ts"
import type { Author, Tenant } from "../platform/kit/Tenant.ts"
import { transaction } from "../platform/storage/Database.ts"
import { makeAccountReports } from "./AccountReports.ts"
import type { InboundContext } from "./ContextStatement.ts"
import { type Decision, nothing } from "./Decision.ts"
import { makeEnrichment, untilDecided } from "./Enrichment.ts"
import { makeTakeRefundNews } from "./FailedRefunds.ts"
import { makeFetchEvent } from "./FetchEvent.ts"
import type { Receipt, Replay } from "./Receipt.ts"
import { makeReceiptRecordsRepo } from "./ReceiptRecordsRepo.ts"
import { makeReceiptsRepo } from "./ReceiptsRepo.ts"
import { isRefundNews } from "./RefundNews.ts"
import { refuse, requireReadable } from "./ReplayRefusals.ts"
import type { Notification } from "./ThinNotification.ts"

/**
 * Whether a receipt is of a thin notification or an account's status: its event reported one moment, and is stored or
 * gone.
 */
const isOfAMoment = ({ type }: Receipt): boolean => type === "account.updated" || /^v\d+\./.test(type)

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

/** Creates the missing deliveries of a receipt's events; see `Receipts.replay`. */
export const makeReplay = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const audit = yield* makeAudit
  const receipts = yield* makeReceiptsRepo(null)
  const records = yield* makeReceiptRecordsRepo
  const { decide } = yield* makeEnrichment
  const accountReports = yield* makeAccountReports
  const fetchEvent = yield* makeFetchEvent
  const takeRefundNews = yield* makeTakeRefundNews

  const contextOf = Effect.fnUntraced(function* (receipt: Receipt, sold: SoldItemsReference | null) {
    const { accountId, environment, organizationId, providerEventId } = receipt
    const context =
      accountId === null ? undefined : yield* receipts.findContext({ environment, providerEventId, accountId, sold })
    if (context === undefined || !context.connected) {
      return yield* refuse("account_not_linked")
    }
    return organizationId !== null && organizationId !== context.organizationId
      ? yield* refuse("another_organization")
      : context
  })

  /** Runs in a transaction. */
  const store = Effect.fnUntraced(function* (tenant: Tenant, receipt: Receipt, decision: Decision, author: Author) {
    const { made, outcome } = yield* records.insertMissing(tenant, receipt, decision)
    const changed = made.length > 0 || outcome !== receipt.outcome
    if (changed) {
      yield* audit({
        ...tenant,
        author,
        action: "receipt.replayed",
        targetType: "receipt",
        targetId: receipt.providerEventId
      })
    }
    const replayed: Replay = {
      changed,
      outcome,
      deliveriesMade: made.length,
      events: decision.events.map(({ id, type }) => ({
        id,
        type,
        deliveriesMade: made.filter((eventId) => eventId === id).length
      }))
    }
    return replayed
  })

  /** In a transaction: decides again, since the context may have changed during the call to the provider. */
  const decideAndStore = Effect.fnUntraced(function* (
    receipt: Receipt,
    event: ProviderEvent,
    author: Author,
    fetched: Parameters<typeof decide>[3]
  ) {
    const { organizationId } = yield* contextOf(receipt, null)
    const tenant = { organizationId, environment: receipt.environment }
    yield* receipts.lockAccount(tenant)
    const context = yield* contextOf({ ...receipt, organizationId }, soldItemsReference(event))
    const attempt = decide(tenant.environment, event, context, fetched)
    if (attempt._tag === "NeedsFetch") return attempt
    const decision = yield* requireReadable(attempt.value)
    return { _tag: "Decided", value: yield* store(tenant, receipt, decision, author) } as const
  })

  /**
   * Refuses a delivered notification whose deliveries are no longer kept: they are removed with their events, and then
   * nothing tells which endpoints got them.
   */
  const requireDeliveries = (receipt: Receipt, tenant: Tenant) =>
    receipt.outcome !== "delivered"
      ? Effect.void
      : Effect.flatMap(records.storedEvents(tenant, receipt), (events) =>
          events.length === 0 ? refuse("deliveries_expired") : Effect.void
        )

  /** Replays a snapshot event, as fetched from the provider. */
  const replaySnapshot = Effect.fnUntraced(function* (
    receipt: Receipt,
    tenant: Tenant,
    context: InboundContext,
    author: Author
  ) {
    yield* requireDeliveries(receipt, tenant)
    const event = yield* fetchEvent(tenant, receipt.providerEventId)
    if (isRefundNews(event)) {
      yield* Effect.flatMap(takeRefundNews(tenant.environment, event, context), requireReadable)
    }
    return yield* untilDecided((fetched) => transaction(sql)(decideAndStore(receipt, event, author, fetched)))
  })

  /** Replays the events as they were stored. */
  const replayStored = Effect.fnUntraced(function* (
    receipt: Receipt,
    tenant: Tenant,
    context: InboundContext,
    author: Author
  ) {
    const stored = yield* records.storedEvents(tenant, receipt)
    const events = stored.map((event) => matchEvent({ ...event, data: dataOf(event.payload) }, context.endpoints))
    return yield* transaction(sql)(store(tenant, receipt, { ...nothing(receipt.outcome, context), events }, author))
  })

  /** Reads the account's present status, if a notification about it could not be read: it was never reported. */
  const replayReading = Effect.fnUntraced(function* (
    receipt: Receipt,
    tenant: Tenant,
    context: InboundContext,
    author: Author
  ) {
    const { replay } = yield* accountReports.repeat(
      (decision) =>
        requireReadable(decision).pipe(
          Effect.flatMap((readable) => transaction(sql)(store(tenant, receipt, readable, author))),
          Effect.map((replay) => ({ stored: true, replay }))
        ),
      notificationOf(receipt),
      tenant,
      context
    )
    return replay
  })

  return Effect.fnUntraced(function* (receipt: Receipt, author: Author) {
    if (receipt.outcome === "wrong_mode") {
      return yield* refuse("wrong_mode")
    }
    const context = yield* contextOf(receipt, null)
    const tenant = { organizationId: context.organizationId, environment: receipt.environment }
    if (!isOfAMoment(receipt)) {
      return yield* replaySnapshot(receipt, tenant, context, author)
    }
    return receipt.outcome === "malformed"
      ? yield* replayReading(receipt, tenant, context, author)
      : yield* replayStored(receipt, tenant, context, author)
  })
})
