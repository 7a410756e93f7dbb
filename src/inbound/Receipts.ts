import type { SqlError } from "@effect/sql"
import { Array, type Duration, Effect, Either } from "effect"
import { WakeUp } from "../engine/queue/WakeUp.ts"
import type { AccountFailure } from "../payments/ProviderErrors.ts"
import type { Environment } from "../platform/kit/Environment.ts"
import type { OrganizationId } from "../platform/kit/Ids.ts"
import { serviceWith } from "../platform/kit/Service.ts"
import type { Author, Tenant } from "../platform/kit/Tenant.ts"
import { orUnavailable, sessionClient } from "../platform/storage/Database.ts"
import { preferReplica } from "../platform/storage/ReadReplica.ts"
import {
  type AccountNotAsked,
  type FindMissing,
  type FoundMissing,
  type ListReceipts,
  type MissingEvent,
  type ReceiptKey,
  ReceiptNotFound,
  ReplayRefused
} from "./Receipt.ts"
import { makeReceiptsRepo } from "./ReceiptsRepo.ts"
import { makeLostEvents, makeReconciliation, type Progress } from "./Reconciliation.ts"
import { makeReplay } from "./Replay.ts"

const notConnected = (organizationId: OrganizationId): AccountNotAsked => ({
  organizationId,
  reason: "not_connected",
  message: "No account is connected in this environment: the provider can't be asked for its events"
})

/** Asks the provider about the accounts of a query. One that can't be asked does not affect the others. */
const makeOfAccounts = Effect.map(makeReceiptsRepo, (records) =>
  Effect.fnUntraced(function* <A>(
    query: FindMissing,
    ask: (tenant: Tenant) => Effect.Effect<A, AccountFailure | SqlError.SqlError>
  ) {
    const { environment, organizationId } = query
    const found = yield* records.accountsOf(query)
    const none = organizationId !== undefined && found.length === 0 ? [notConnected(organizationId)] : []
    const asked = yield* Effect.forEach(found, ({ connected, organizationId }) =>
      connected
        ? ask({ organizationId, environment }).pipe(
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
    const [notAsked, answers] = Array.separate(asked)
    return { answers, notAsked: [...none, ...notAsked] }
  })
)

/** Finds events that the provider has but that left no receipt, for example those lost with a database. */
const makeFindMissing = Effect.gen(function* () {
  const lostEvents = yield* makeLostEvents
  const ofAccounts = yield* makeOfAccounts

  const findOf = Effect.fnUntraced(function* (tenant: Tenant, query: FindMissing) {
    const missing: Array<MissingEvent> = []
    yield* lostEvents(tenant, query, (lost) =>
      Effect.sync(() => {
        for (const { created, id: providerEventId, type } of lost) {
          const providerCreatedAt = new Date(created * 1000)
          missing.push({ organizationId: tenant.organizationId, providerEventId, type, providerCreatedAt })
        }
        return true
      })
    )
    return missing
  })

  return (query: FindMissing) =>
    Effect.map(
      ofAccounts(query, (tenant) => findOf(tenant, query)),
      ({ answers, notAsked }): FoundMissing => ({
        events: answers.flat().sort((a, b) => b.providerCreatedAt.getTime() - a.providerCreatedAt.getTime()),
        notAsked
      })
    )
})

const localOperator: Author = { kind: "operator", id: "local" }

const makeFind = Effect.map(makeReceiptsRepo, (records) =>
  Effect.fnUntraced(function* (key: ReceiptKey) {
    const receipt = yield* records.find(key)
    return receipt === undefined
      ? yield* new ReceiptNotFound({
          ...key,
          message: `There is no receipt of ${key.providerEventId} in ${key.environment}.`
        })
      : receipt
  })
)

const makeReads = Effect.gen(function* () {
  const records = yield* makeReceiptsRepo
  const find = yield* makeFind
  const onReplica = yield* preferReplica

  /** Newest first. A page reads a bounded number of receipts, so filtered it may contain few or none. */
  const list = Effect.fn("Receipts.list")(
    function* (query: ListReceipts) {
      const { before, environment } = query
      if (before !== undefined) {
        yield* find({ environment, providerEventId: before })
      }
      return yield* records.list(query)
    },
    onReplica,
    orUnavailable
  )

  const get = Effect.fn("Receipts.get")(
    function* (key: ReceiptKey) {
      const receipt = yield* find(key)
      return { ...receipt, events: yield* records.eventsOf(receipt) }
    },
    onReplica,
    orUnavailable
  )

  return { list, get }
})

type Replays = Effect.Effect.Success<typeof makeReplay>

const makeReplayOne = Effect.fnUntraced(function* (replays: Replays) {
  const records = yield* makeReceiptsRepo
  const find = yield* makeFind
  const wakeUp = yield* WakeUp

  const takeIn = (tenant: Tenant, providerEventId: string, author: Author) =>
    Effect.flatMap(replays.fetchEvent(tenant, providerEventId), (event) => replays.takeIn(tenant, event, author))

  /**
   * Creates the missing deliveries of a notification's events, and nothing else: those to endpoints that are active and
   * subscribed now, and whose filters the event passes. The event is fetched again from the provider, which keeps it
   * for 30 days; an account status event is never created again, since it reported a past state. Existing deliveries
   * are unchanged, whatever their state. Idempotent: repeated replays create each delivery once, and a delivered
   * notification is refused once its deliveries are no longer kept. Audited if anything was created.
   *
   * A `malformed` notification is processed as if it had just arrived, once this version can read it: with events,
   * deliveries and skipped events, or an account's present status. So is an `unlinked` one, once its account is linked.
   *
   * If there is no receipt, but the organization is given, the event is stored as if its notification arrived now. A
   * receipt of another organization than the given one is refused.
   */
  return Effect.fn("Receipts.replay")(function* (
    { organizationId, ...key }: ReceiptKey & { readonly organizationId?: OrganizationId },
    author: Author = localOperator
  ) {
    const receipt = organizationId === undefined ? yield* find(key) : yield* records.find(key)
    const owner = receipt?.organizationId ?? organizationId
    if (organizationId !== undefined && owner !== organizationId) {
      return yield* new ReplayRefused({
        reason: "another_organization",
        message: `The receipt of ${key.providerEventId} belongs to organization ${owner}`
      })
    }
    const replayed =
      receipt === undefined && organizationId !== undefined
        ? yield* takeIn({ organizationId, environment: key.environment }, key.providerEventId, author)
        : yield* replays.replay(receipt ?? (yield* find(key)), author)
    if (replayed.deliveriesMade > 0) {
      yield* wakeUp.announce
    }
    return replayed
  }, orUnavailable)
})

const makeReplayLost = Effect.fnUntraced(function* (replays: Replays) {
  const wakeUp = yield* WakeUp
  const ofAccounts = yield* makeOfAccounts
  const reconciliation = yield* makeReconciliation(replays)

  return {
    /**
     * Stores the accounts' events of a period that left no receipt, as `replay` does, the oldest first. Reports its
     * progress after each part of the period, and returns the accounts that could not be asked.
     */
    replayLost: Effect.fn("Receipts.replayLost")(function* (
      query: Required<Omit<FindMissing, "organizationId">> & Pick<FindMissing, "organizationId">,
      author: Author,
      onProgress: (tenant: Tenant, progress: Progress) => Effect.Effect<void>
    ) {
      const { notAsked } = yield* ofAccounts(query, (tenant) =>
        reconciliation.reconcile(tenant, query, author, {
          pace: Effect.void,
          upTo: (_, progress) => Effect.zipRight(wakeUp.announce, onProgress(tenant, progress))
        })
      )
      return notAsked
    }, orUnavailable),
    /**
     * A round of the background task that does so for all connected accounts, for the time since their last comparison.
     */
    reconcile: (environment: Environment) =>
      orUnavailable(
        Effect.flatMap(reconciliation.round(environment), (stored) => (stored > 0 ? wakeUp.announce : Effect.void))
      )
  }
})

const make = Effect.fnUntraced(function* (options: {
  /** How long a receipt is kept. */
  readonly receiptRetention: Duration.Duration
}) {
  const records = yield* makeReceiptsRepo
  const session = yield* sessionClient
  const replays = yield* makeReplay
  const findMissing = yield* makeFindMissing

  return {
    ...(yield* makeReads),
    replay: yield* makeReplayOne(replays),
    ...(yield* makeReplayLost(replays)),
    /**
     * Lists connected accounts' events at the provider, and returns those that left no receipt, newest first: a
     * notification may never have arrived, or the database may have lost it. Also returns the accounts that could not
     * be listed: those for which the provider fails, as with more than 100,000 events in that period, and those that
     * are not connected but were at some time in it.
     */
    missing: Effect.fn("Receipts.missing")(findMissing, orUnavailable),
    /**
     * Removes the months of receipts that are past their retention, and in small batches receipts that are not in a
     * month's table. Also creates the tables for the next months.
     */
    clean: orUnavailable(records.clean(options.receiptRetention, session))
  }
})

/** Receipts of the provider's notifications, for operators. */
export class Receipts extends serviceWith<Receipts>()("connected-payments/inbound/Receipts", make) {}
