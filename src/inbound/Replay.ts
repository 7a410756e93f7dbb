import { SqlClient } from "@effect/sql"
import { Effect, Either, Predicate } from "effect"
import { parseProviderEvent, type SoldItemsReference, soldItemsReference } from "../events/Translate.ts"
import { makeAudit } from "../kit/Audit.ts"
import type { Author, Tenant } from "../kit/Tenant.ts"
import { Accounts } from "../provider/Accounts.ts"
import { Provider } from "../provider/Provider.ts"
import { transaction } from "../storage/Database.ts"
import { makeCompletion } from "./Completion.ts"
import { dataOnly, matchEvent } from "./Consequences.ts"
import { type Receipt, type Replay, ReplayRefused } from "./Receipt.ts"
import { makeReceiptRecordsRepo } from "./ReceiptRecordsRepo.ts"
import { type InboundContext, makeReceiptsRepo, type NewEvent } from "./ReceiptsRepo.ts"
import { makeReplayRepo } from "./ReplayRepo.ts"

const refusals = {
  wrong_mode: "The event is of the provider's other mode: nothing may be made of it",
  account_not_linked: "The event's account is not linked and connected in this environment",
  another_organization: "The event's account is linked to another organization by now",
  event_expired: "The provider does not have the event any more; it keeps events for 30 days"
} as const

const refuse = (reason: ReplayRefused["reason"], cause?: unknown) =>
  new ReplayRefused({ reason, message: refusals[reason], ...(cause === undefined ? {} : { cause }) })

/** Thin notifications and the status of an account: what they became was told of a moment, and is stored or is gone. */
const isOfAMoment = ({ type }: Receipt): boolean => type === "account.updated" || /^v\d+\./.test(type)

const dataOf = (payload: string): Readonly<Record<string, unknown>> => {
  const envelope: unknown = JSON.parse(payload)
  return Predicate.hasProperty(envelope, "data") && Predicate.isReadonlyRecord(envelope.data) ? envelope.data : {}
}

/** Makes the deliveries that are missing of a receipt's events; see `Receipts.replay`. */
export const makeReplay = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const provider = yield* Provider
  const accounts = yield* Accounts
  const audit = yield* makeAudit
  const receipts = yield* makeReceiptsRepo
  const records = yield* makeReceiptRecordsRepo
  const repo = yield* makeReplayRepo
  const complete = yield* makeCompletion

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

  /** The events of a snapshot, translated from what the provider has of it. */
  const eventsAnew = Effect.fnUntraced(function* (receipt: Receipt, tenant: Tenant) {
    const fetched = yield* accounts
      .use(tenant, (account) => provider.retrieveEvent(account, receipt.providerEventId))
      .pipe(Effect.catchTag("ProviderObjectNotFound", (cause) => refuse("event_expired", cause)))
    const event = parseProviderEvent(fetched)
    if (Either.isLeft(event)) {
      return []
    }
    const context = yield* contextOf(receipt, soldItemsReference(event.right))
    return (yield* complete(tenant.environment, event.right, context)).events
  })

  /** The events as they were stored. */
  const eventsStored = (receipt: Receipt, tenant: Tenant, context: InboundContext) =>
    Effect.map(records.storedEvents(tenant, receipt), (events) =>
      events.map((event) => matchEvent({ ...event, data: dataOf(event.payload) }, dataOnly, context))
    )

  const store = Effect.fnUntraced(function* (
    tenant: Tenant,
    receipt: Receipt,
    events: ReadonlyArray<NewEvent>,
    author: Author
  ) {
    const made = yield* repo.insertMissing(tenant, receipt, events)
    if (made.length > 0) {
      yield* audit({
        ...tenant,
        author,
        action: "receipt.replayed",
        targetType: "receipt",
        targetId: receipt.providerEventId
      })
    }
    return made
  })

  return Effect.fnUntraced(function* (receipt: Receipt, author: Author) {
    if (receipt.outcome === "wrong_mode") {
      return yield* refuse("wrong_mode")
    }
    const context = yield* contextOf(receipt, null)
    const tenant = { organizationId: context.organizationId, environment: receipt.environment }
    const events = isOfAMoment(receipt)
      ? yield* eventsStored(receipt, tenant, context)
      : yield* eventsAnew(receipt, tenant)
    const wanted = events.filter(({ subscribers }) => subscribers.length > 0)
    const made = wanted.length === 0 ? [] : yield* transaction(sql)(store(tenant, receipt, wanted, author))
    const replayed: Replay = {
      deliveriesMade: made.length,
      events: events.map(({ id, type }) => ({
        id,
        type,
        deliveriesMade: made.filter((eventId) => eventId === id).length
      }))
    }
    return replayed
  })
})
