import { SqlClient, SqlError } from "@effect/sql"
import { Data, Effect, type Fiber, FiberRef } from "effect"
import { Batcher } from "../kit/Batcher.ts"
import { batchIntervalMillis } from "../kit/BatchInterval.ts"
import { newId } from "../kit/Ids.ts"
import { RequestId } from "../kit/Request.ts"
import type { Tenant } from "../kit/Tenant.ts"
import type { HandOff, LocalHandOff } from "../publishing/LocalHandOff.ts"
import { isInTransaction, isUnavailable } from "../storage/Database.ts"
import { makePreparing, type PreparedStatement } from "../storage/Statements.ts"
import {
  type ContextQuery,
  type ContextRow,
  contextSql,
  contextsOf,
  contextValues,
  type InboundContext
} from "./ContextStatement.ts"
import { makeReceiptPartitions, type ReceiptPartition } from "./ReceiptPartition.ts"
import {
  accountSql,
  batchSql,
  claimsMilestone,
  type NewReceipt,
  type ReceiptsRow,
  receiptValues,
  type StoredReceipt,
  type VersionedReceipt
} from "./ReceiptStatement.ts"
import { RememberedContexts } from "./RememberedContexts.ts"

/**
 * Batching: at most `concurrency` statements run at once, each with one batch; receipts that arrive meanwhile gather
 * for the next. They wait as long as for a connection, and fail in the same way.
 */
const gathering = {
  concurrency: 2,
  maxBatch: 64,
  interval: batchIntervalMillis,
  patience: {
    millis: 5000,
    error: () => new SqlError.SqlError({ cause: undefined, message: "The database is too slow for what arrives" })
  },
  isOfOne: (error: SqlError.SqlError) => !isUnavailable(error)
} as const

/**
 * The SQL of the slice; nothing outside it imports this.
 *
 * @param handOff takes over new deliveries as they are stored; null if they always wait for a claim
 */
export const makeReceiptsRepo = Effect.fnUntraced(function* (handOff: LocalHandOff["Type"] | null) {
  const sql = yield* SqlClient.SqlClient
  const prepare = yield* makePreparing
  const context = prepare<ContextRow>(contextSql(sql))
  const partitionsOf = yield* makeReceiptPartitions
  const insertSearching = prepare<ReceiptsRow>(batchSql(sql, { kind: "searched" }))
  const insertAlone = prepare<ReceiptsRow>(accountSql(sql))

  const findContexts = (queries: ReadonlyArray<ContextQuery>) =>
    Effect.map(context(contextValues(queries)), (rows) => contextsOf(queries.length, rows))

  // One statement per month and set of other tables to check
  const monthly = new Map<string, PreparedStatement<ReceiptsRow>>()
  const insertInto = (partition: ReceiptPartition): PreparedStatement<ReceiptsRow> => {
    if (partition.kind !== "month") return insertSearching
    const key = `${partition.month} ${partition.others.join(" ")}`
    const known = monthly.get(key)
    if (known !== undefined) return known
    const insert = prepare<ReceiptsRow>(batchSql(sql, partition))
    monthly.set(key, insert)
    return insert
  }

  const insertWith = (
    insert: PreparedStatement<ReceiptsRow>,
    receipts: ReadonlyArray<VersionedReceipt>,
    handOff: HandOff | null
  ) =>
    insert(receiptValues(receipts, handOff)).pipe(
      Effect.onError(() => Effect.sync(() => handOff?.cancel())),
      Effect.map((rows) => {
        settle(handOff, rows)
        return inOrder(receipts, rows)
      })
    )

  /**
   * Receipts that were not stored are in another table, or their tenant has changed: one search of all tables decides.
   */
  const insertAt = (partition: ReceiptPartition, receipts: ReadonlyArray<VersionedReceipt>, begin: Begin) =>
    Effect.suspend(() => insertWith(insertInto(partition), receipts, begin())).pipe(
      Effect.flatMap((stored) => {
        const missing = receipts.filter((_, index) => stored[index] === undefined)
        if (partition.kind !== "month" || missing.length === 0) return Effect.succeed(stored)
        return Effect.map(insertWith(insertSearching, missing, null), (searched) => {
          const found = searched.values()
          return stored.map((known) => known ?? found.next().value)
        })
      })
    )

  const insertAll = (
    receipts: ReadonlyArray<VersionedReceipt>,
    begin: Begin
  ): Effect.Effect<ReadonlyArray<StoredReceipt | undefined>, SqlError.SqlError> =>
    Effect.flatMap(partitionsOf(receipts), (partitions) => {
      const [first] = partitions
      if (first !== undefined && partitions.length === 1) return insertAt(first[0], receipts, begin)
      return Effect.map(
        Effect.forEach(partitions, ([partition, some]) =>
          Effect.map(insertAt(partition, some, begin), (stored) =>
            some.map((receipt, index) => [receipt, stored[index]] as const)
          )
        ),
        (stored) => {
          const byReceipt = new Map(stored.flat())
          return receipts.map((receipt) => byReceipt.get(receipt))
        }
      )
    })
  const begin = () => handOff?.begin() ?? null

  const contexts = yield* Batcher.make({
    ...gathering,
    keyOf: (query: ContextQuery) => receiptKey(query),
    run: (queries) => Effect.withTracerEnabled(findContexts(queries), false)
  })
  const insertions = yield* Batcher.make({
    ...gathering,
    keyOf: (receipt: VersionedReceipt) => receiptKey(receipt),
    run: (receipts) => Effect.withTracerEnabled(insertAll(receipts, begin), false)
  })

  const findOne = (query: ContextQuery) => Effect.map(findContexts([query]), ([found]) => found)
  const insertOne = (receipt: VersionedReceipt, begin: Begin) =>
    Effect.map(insertAll([receipt], begin), ([stored]) => stored)

  const remembered = new RememberedContexts()
  const lookUp = (query: ContextQuery): Effect.Effect<InboundContext | undefined, SqlError.SqlError> =>
    Effect.withFiberRuntime((fiber) => {
      const way = wayOf(fiber)
      return Effect.flatMap(way === "gathered" ? contexts.submit(query) : findOne(query), (found) => {
        if (found === undefined) return Effect.succeed(undefined)
        // A transaction's reads must not be cached: others can't see them yet
        if (way !== "inTransaction") remembered.put(accountKey(query), found)
        return Effect.succeed({ ...found, version: null })
      })
    })

  /** In a transaction, hand nothing over: no delivery may be sent before the commit. */
  const insertBy = (receipt: VersionedReceipt, way: Way) =>
    way === "gathered" ? insertions.submit(receipt) : insertOne(receipt, way === "alone" ? begin : () => null)

  const insertWithAccount = (receipt: VersionedReceipt, milestone: boolean) =>
    Effect.zipWith(newId, RequestId, (auditId, requestId) => [
      milestone,
      receipt.deauthorizes,
      auditId,
      requestId
    ]).pipe(
      Effect.flatMap((further) => insertAlone([...receiptValues([receipt], null), ...further])),
      Effect.map((rows) => inOrder([receipt], rows)[0])
    )

  const insert = (receipt: VersionedReceipt): Effect.Effect<StoredReceipt | undefined, SqlError.SqlError> => {
    const milestone = claimsMilestone(receipt.events)
    return milestone || receipt.deauthorizes
      ? insertWithAccount(receipt, milestone)
      : Effect.withFiberRuntime((fiber) => insertBy(receipt, wayOf(fiber)))
  }

  return {
    /** Looks up everything about the account in one round trip. Undefined if it is not linked in this environment. */
    findContext: lookUp,

    /**
     * Like `findContext`, but uses the cache. A cached context has a version, must be stored with `insertCached`, and
     * is returned synchronously.
     */
    cachedContext: (query: ContextQuery): Effect.Effect<InboundContext | undefined, SqlError.SqlError> => {
      const known = query.sold === null ? remembered.get(accountKey(query)) : undefined
      return known === undefined ? lookUp(query) : Effect.succeed(known)
    },

    /**
     * Stores a receipt, its events, its deliveries and what paused endpoints missed in one statement, and thus in one
     * transaction. A further copy of the notification is counted and changes nothing else. Of an account's simultaneous
     * first payments, one creates the milestone: the account's row decides. Endpoints that were deleted or paused since
     * the lookup get no delivery.
     */
    insert: (receipt: NewReceipt): Effect.Effect<StoredReceipt, SqlError.SqlError> =>
      Effect.flatMap(insert({ ...receipt, tenantVersion: null }), (stored) =>
        stored === undefined ? Effect.dieMessage("An upsert returns its row") : Effect.succeed(stored)
      ),

    /** Like `insert`, for a cached context: fails and stores nothing if the tenant has changed since it was cached. */
    insertCached: (
      receipt: NewReceipt,
      tenantVersion: string
    ): Effect.Effect<StoredReceipt, SqlError.SqlError | TenantChanged> =>
      Effect.flatMap(insert({ ...receipt, tenantVersion }), (stored) => {
        if (stored !== undefined) return Effect.succeed(stored)
        remembered.forget(accountKey(receipt))
        return new TenantChanged()
      }),

    /** In a transaction: locks the tenant's account, so that it is not linked, unlinked or disconnected meanwhile. */
    lockAccount: ({ environment, organizationId }: Tenant): Effect.Effect<void, SqlError.SqlError> =>
      Effect.asVoid(sql`
        SELECT 1 FROM payments.provider_accounts
        WHERE organization_id = ${organizationId} AND environment = ${environment} FOR UPDATE`)
  }
})

/** Starts a hand-off of deliveries, if there is one: once for each statement. */
type Begin = () => HandOff | null

/** How a statement runs: batched with others that arrive now; alone, if the request is traced; or in a transaction. */
type Way = "gathered" | "alone" | "inTransaction"

const wayOf = (fiber: Fiber.RuntimeFiber<unknown, unknown>): Way => {
  if (isInTransaction(fiber)) return "inTransaction"
  return fiber.getFiberRef(FiberRef.currentTracerEnabled) ? "alone" : "gathered"
}

/** Hands over the deliveries stored under the lease, and releases the places reserved for the others, possibly all. */
const settle = (handOff: HandOff | null, [row]: ReadonlyArray<ReceiptsRow>): void => {
  if (row === undefined) handOff?.cancel()
  else handOff?.settle({ rows: row.handed ?? [], storedAt: row.storedAt })
}

/** The result for each receipt; undefined if its tenant has changed. */
const inOrder = (
  receipts: ReadonlyArray<VersionedReceipt>,
  [row]: ReadonlyArray<ReceiptsRow>
): ReadonlyArray<StoredReceipt | undefined> => {
  const stored = new Map<string, StoredReceipt>()
  for (const [environment, providerEventId, first, outcome] of row?.receipts ?? []) {
    stored.set(receiptKey({ environment, providerEventId }), { first, outcome, waits: row?.waits === true })
  }
  return receipts.map((receipt) => stored.get(receiptKey(receipt)))
}

/** Key of a receipt's notification: copies share it. */
const receiptKey = ({ environment, providerEventId }: Pick<NewReceipt, "environment" | "providerEventId">): string =>
  `${environment} ${providerEventId}`

const accountKey = ({ accountId, environment }: Pick<NewReceipt, "accountId" | "environment">): string =>
  `${environment} ${accountId}`

/** A cached context is outdated. */
export class TenantChanged extends Data.TaggedError("TenantChanged") {}
