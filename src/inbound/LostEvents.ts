import { SqlClient } from "@effect/sql"
import { Array, Clock, Effect, Either } from "effect"
import { type ProviderEvent, soldItemsReference, translatedProviderTypes } from "../events/stripe/Translate.ts"
import { Accounts } from "../payments/Accounts.ts"
import { Provider } from "../payments/Provider.ts"
import { makeAudit } from "../platform/kit/Audit.ts"
import type { Environment } from "../platform/kit/Environment.ts"
import type { OrganizationId } from "../platform/kit/Ids.ts"
import type { Author, Tenant } from "../platform/kit/Tenant.ts"
import { transaction } from "../platform/storage/Database.ts"
import { makeAccountReports } from "./AccountReports.ts"
import { classify, type Decision } from "./Decision.ts"
import { makeEnrichment, untilDecided } from "./Enrichment.ts"
import { makeTakeRefundNews } from "./FailedRefunds.ts"
import { makeFetchEvent } from "./FetchEvent.ts"
import type { AccountNotAsked, FindMissing, FoundMissing, MissingEvent, Replay } from "./Receipt.ts"
import { makeReceiptRecordsRepo } from "./ReceiptRecordsRepo.ts"
import { makeReceiptsRepo } from "./ReceiptsRepo.ts"
import { isRefundNews, refundNewsTypes } from "./RefundNews.ts"
import { refuse, requireReadable } from "./ReplayRefusals.ts"

/** The notification types that can lead to more than a receipt. */
const knownTypes: ReadonlySet<string> = new Set([...translatedProviderTypes, ...refundNewsTypes])

/** Finds and stores events that the provider has but that left no receipt, for example those lost with a database. */
export const makeLostEvents = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const provider = yield* Provider
  const accounts = yield* Accounts
  const audit = yield* makeAudit
  const receipts = yield* makeReceiptsRepo(null)
  const records = yield* makeReceiptRecordsRepo
  const { decide } = yield* makeEnrichment
  const accountReports = yield* makeAccountReports
  const takeRefundNews = yield* makeTakeRefundNews
  const fetchEvent = yield* makeFetchEvent

  const findOf = Effect.fnUntraced(function* (tenant: Tenant, { since, until }: FindMissing) {
    const listed = yield* accounts.use(tenant, (account) => provider.listEvents(account, { since, until }))
    const translated = listed.filter(({ type }) => knownTypes.has(type))
    const missing = yield* records.withoutReceipt(
      tenant.environment,
      translated.map(({ id }) => id)
    )
    return translated
      .filter(({ id }) => missing.has(id))
      .map(
        ({ created, id, type }): MissingEvent => ({
          organizationId: tenant.organizationId,
          providerEventId: id,
          type,
          providerCreatedAt: new Date(created * 1000)
        })
      )
  })

  const notConnected = (organizationId: OrganizationId): AccountNotAsked => ({
    organizationId,
    reason: "not_connected",
    message: "No account is connected in this environment: the provider can't be asked for its events"
  })

  /** An account whose events can't be listed does not affect the others. */
  const find = Effect.fnUntraced(function* (query: FindMissing) {
    const { environment, organizationId } = query
    const found = yield* records.accountsOf(query)
    const none = organizationId !== undefined && found.length === 0 ? [notConnected(organizationId)] : []
    const asked = yield* Effect.forEach(found, ({ connected, organizationId }) =>
      connected
        ? findOf({ organizationId, environment }, query).pipe(
            Effect.map(Either.right),
            Effect.catchAll((error) => {
              if (error._tag === "ProviderAccountNotConnected") {
                return Effect.succeed(Either.left(notConnected(organizationId)))
              }
              return error._tag === "ServiceUnavailable" || error._tag === "SqlError"
                ? Effect.fail(error)
                : Effect.succeed(
                    Either.left<AccountNotAsked>({
                      organizationId,
                      reason: "failed",
                      message: `${error.code}: ${error.message}`
                    })
                  )
            })
          )
        : Effect.succeed(Either.left(notConnected(organizationId)))
    )
    const [notAsked, events] = Array.separate(asked)
    const foundMissing: FoundMissing = {
      events: events.flat().sort((a, b) => b.providerCreatedAt.getTime() - a.providerCreatedAt.getTime()),
      notAsked: [...none, ...notAsked]
    }
    return foundMissing
  })

  /** The context of an event, as of now. */
  const contextOf = Effect.fnUntraced(function* (environment: Environment, event: ProviderEvent) {
    const context =
      event.account === null
        ? undefined
        : yield* receipts.findContext({
            environment,
            providerEventId: event.id,
            accountId: event.account,
            sold: soldItemsReference(event)
          })
    const classified = classify(environment, event, context)
    return classified._tag === "NotForUs" ? yield* refuseOf(classified.decision) : classified.context
  })

  /** Runs in a transaction. */
  const store = Effect.fnUntraced(function* (tenant: Tenant, event: ProviderEvent, author: Author, decision: Decision) {
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
      yield* audit({ ...tenant, author, action: "receipt.replayed", targetType: "receipt", targetId: event.id })
    }
    const events = decision.events.map(({ id, matching, type }) => ({
      id,
      type,
      deliveriesMade: first ? matching.filter(({ active }) => active).length : 0
    }))
    const replay: Replay = {
      changed: first,
      outcome,
      deliveriesMade: events.reduce((sum, { deliveriesMade }) => sum + deliveriesMade, 0),
      events
    }
    return { stored: first, replay }
  })

  /** Runs in a transaction. */
  const decideAndStore = Effect.fnUntraced(function* (
    tenant: Tenant,
    event: ProviderEvent,
    author: Author,
    fetched: Parameters<typeof decide>[3]
  ) {
    yield* receipts.lockAccount(tenant)
    const context = yield* contextOf(tenant.environment, event)
    const attempt = decide(tenant.environment, event, context, fetched)
    if (attempt._tag === "NeedsFetch") return attempt
    const { replay } = yield* store(tenant, event, author, yield* requireReadable(attempt.value))
    return { _tag: "Decided", value: replay } as const
  })

  /** Reads the account again, as for a notification: what the event says may be outdated. */
  const takeInReading = Effect.fnUntraced(function* (tenant: Tenant, event: ProviderEvent, author: Author) {
    const context = yield* contextOf(tenant.environment, event)
    const { replay } = yield* accountReports.repeat(
      (decision) =>
        decision.outcome === "wrong_mode" || decision.outcome === "unlinked"
          ? refuseOf(decision)
          : Effect.flatMap(requireReadable(decision), (readable) =>
              transaction(sql)(store(tenant, event, author, readable))
            ),
      event,
      tenant,
      context
    )
    return replay
  })

  /** Stores an event as its notification would have been. If that arrives later, it counts as a copy. */
  const takeIn = Effect.fnUntraced(function* (tenant: Tenant, providerEventId: string, author: Author) {
    const event = yield* fetchEvent(tenant, providerEventId)
    if (isRefundNews(event)) {
      const context = yield* contextOf(tenant.environment, event)
      yield* Effect.flatMap(takeRefundNews(tenant.environment, event, context), requireReadable)
    }
    return event.type === "account.updated"
      ? yield* takeInReading(tenant, event, author)
      : yield* untilDecided((fetched) => transaction(sql)(decideAndStore(tenant, event, author, fetched)))
  })

  return { find, takeIn }
})

const refuseOf = ({ outcome }: Decision) => refuse(outcome === "wrong_mode" ? "wrong_mode" : "account_not_linked")
