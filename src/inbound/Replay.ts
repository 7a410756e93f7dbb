import { SqlClient } from "@effect/sql"
import { Effect, Either, Predicate } from "effect"
import {
  type ProviderEvent,
  parseProviderEvent,
  type SoldItemsReference,
  soldItemsReference
} from "../events/stripe/Translate.ts"
import { makeAudit } from "../kit/Audit.ts"
import type { Author, Tenant } from "../kit/Tenant.ts"
import { Accounts } from "../provider/Accounts.ts"
import { Provider } from "../provider/Provider.ts"
import { matchEvent } from "../publishing/Publication.ts"
import { transaction } from "../storage/Database.ts"
import { makeAccountReports } from "./AccountReports.ts"
import { makeCompletion, untilConcluded } from "./Completion.ts"
import { type Consequence, dataOnly, nothing } from "./Consequences.ts"
import type { InboundContext } from "./ContextStatement.ts"
import { type Receipt, type Replay, ReplayRefused } from "./Receipt.ts"
import { makeReceiptRecordsRepo } from "./ReceiptRecordsRepo.ts"
import { makeReceiptsRepo } from "./ReceiptsRepo.ts"
import { makeReplayRepo } from "./ReplayRepo.ts"
import type { Notification } from "./ThinNotification.ts"

const refusals = {
  wrong_mode: "The event is of the provider's other mode: nothing may be made of it",
  account_not_linked: "The event's account is not linked and connected in this environment",
  another_organization: "The event's account is linked to another organization by now",
  event_expired: "The provider does not have the event any more; it keeps events for 30 days"
} as const

const refuse = (reason: keyof typeof refusals, cause?: unknown) =>
  new ReplayRefused({ reason, message: refusals[reason], ...(cause === undefined ? {} : { cause }) })

/** Nothing is stored of what can't be read: a later version may be able to read it. */
const refuseUnreadable = (why: string) =>
  new ReplayRefused({ reason: "malformed", message: `This version can't read the event either: ${why}` })

const requireReadable = (consequence: Consequence): Effect.Effect<Consequence, ReplayRefused> =>
  consequence.outcome === "malformed"
    ? Effect.fail(refuseUnreadable(consequence.unreadable?.reason ?? "its object"))
    : Effect.succeed(consequence)

/** Thin notifications and an account's status: what they became was reported at one moment, and is stored or gone. */
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

/** Makes the deliveries that are missing of a receipt's events; see `Receipts.replay`. */
export const makeReplay = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const provider = yield* Provider
  const accounts = yield* Accounts
  const audit = yield* makeAudit
  const receipts = yield* makeReceiptsRepo(null)
  const records = yield* makeReceiptRecordsRepo
  const repo = yield* makeReplayRepo
  const { conclude } = yield* makeCompletion
  const accountReports = yield* makeAccountReports

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

  /** In a transaction. */
  const store = Effect.fnUntraced(function* (
    tenant: Tenant,
    receipt: Receipt,
    consequence: Consequence,
    author: Author
  ) {
    const { made, outcome } = yield* repo.insertMissing(tenant, receipt, consequence)
    if (made.length > 0 || outcome !== receipt.outcome) {
      yield* audit({
        ...tenant,
        author,
        action: "receipt.replayed",
        targetType: "receipt",
        targetId: receipt.providerEventId
      })
    }
    const replayed: Replay = {
      outcome,
      deliveriesMade: made.length,
      events: consequence.events.map(({ id, type }) => ({
        id,
        type,
        deliveriesMade: made.filter((eventId) => eventId === id).length
      }))
    }
    return replayed
  })

  const fetchEvent = Effect.fnUntraced(function* (receipt: Receipt, tenant: Tenant) {
    const fetched = yield* accounts
      .use(tenant, (account) => provider.retrieveEvent(account, receipt.providerEventId))
      .pipe(Effect.catchTag("ProviderObjectNotFound", (cause) => refuse("event_expired", cause)))
    return yield* Either.mapLeft(parseProviderEvent(fetched), ({ reason }) => refuseUnreadable(reason))
  })

  /** In a transaction: what the event leads to now, not what it led to when the provider was asked. */
  const concludeAndStore = Effect.fnUntraced(function* (
    receipt: Receipt,
    event: ProviderEvent,
    author: Author,
    fetched: Parameters<typeof conclude>[3]
  ) {
    const { organizationId } = yield* contextOf(receipt, null)
    const tenant = { organizationId, environment: receipt.environment }
    yield* receipts.lockAccount(tenant)
    const context = yield* contextOf({ ...receipt, organizationId }, soldItemsReference(event))
    const attempt = conclude(tenant.environment, event, context, fetched)
    if (attempt._tag === "Lacking") return attempt
    const consequence = yield* requireReadable(attempt.value)
    return { _tag: "Concluded", value: yield* store(tenant, receipt, consequence, author) } as const
  })

  /** The events of a snapshot, translated from what the provider has of it. */
  const replaySnapshot = Effect.fnUntraced(function* (receipt: Receipt, tenant: Tenant, author: Author) {
    const event = yield* fetchEvent(receipt, tenant)
    return yield* untilConcluded((fetched) => transaction(sql)(concludeAndStore(receipt, event, author, fetched)))
  })

  /** The events as they were stored. */
  const replayStored = Effect.fnUntraced(function* (
    receipt: Receipt,
    tenant: Tenant,
    context: InboundContext,
    author: Author
  ) {
    const stored = yield* records.storedEvents(tenant, receipt)
    const events = stored.map((event) =>
      matchEvent({ ...event, data: dataOf(event.payload) }, dataOnly, context.endpoints)
    )
    return yield* transaction(sql)(store(tenant, receipt, { ...nothing(receipt.outcome, context), events }, author))
  })

  /** The account's status as it is now, if a notification about it could not be read: it was never reported. */
  const replayReading = Effect.fnUntraced(function* (
    receipt: Receipt,
    tenant: Tenant,
    context: InboundContext,
    author: Author
  ) {
    const { replay } = yield* accountReports.repeat(
      (consequence) =>
        requireReadable(consequence).pipe(
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
      return yield* replaySnapshot(receipt, tenant, author)
    }
    return receipt.outcome === "malformed"
      ? yield* replayReading(receipt, tenant, context, author)
      : yield* replayStored(receipt, tenant, context, author)
  })
})
