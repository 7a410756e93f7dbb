import { SqlClient, SqlError } from "@effect/sql"
import { Data, Effect } from "effect"
import type { HandOff, LocalHandOff } from "../engine/queue/Enqueue.ts"
import { Batcher, batchIntervalMillis } from "../platform/kit/Concurrency.ts"
import { newId } from "../platform/kit/Ids.ts"
import { RequestId } from "../platform/kit/Request.ts"
import { ofTenant, type Tenant } from "../platform/kit/Tenant.ts"
import { isInTransaction, isUnavailable } from "../platform/storage/Database.ts"
import { makePreparing, type PreparedStatement } from "../platform/storage/Statements.ts"
import {
  type ContextQuery,
  type ContextRow,
  contextSql,
  contextsOf,
  contextValues,
  type FoundContext,
  type InboundContext
} from "./ContextStatement.ts"
import {
  accountSql,
  batchSql,
  claimsMilestone,
  type MonthPartition,
  makeReceiptPartitions,
  type NewReceipt,
  type ReceiptsRow,
  receiptValues,
  type StoredReceipt,
  type VersionedReceipt
} from "./ReceiptStatement.ts"

/**
 * Batching: at most `concurrency` statements run at once, each with one batch; receipts that arrive meanwhile gather
 * for the next. They wait as long as for a connection, and fail in the same way.
 */
const batching = {
  concurrency: 2,
  maxBatch: 64,
  interval: batchIntervalMillis,
  timeout: {
    millis: 5000,
    error: () => new SqlError.SqlError({ cause: undefined, message: "The database is too slow for the notifications" })
  },
  isOfOne: (error: SqlError.SqlError) => !isUnavailable(error)
} as const

const makeParts = Effect.fnUntraced(function* (handOff: LocalHandOff["Type"] | null) {
  const sql = yield* SqlClient.SqlClient
  const prepare = yield* makePreparing
  const context = prepare<ContextRow>(contextSql(sql))
  const partitionsOf = yield* makeReceiptPartitions
  const insertSearching = prepare<ReceiptsRow>(batchSql(sql, { kind: "searched" }))
  const storeAlone = prepare<ReceiptsRow>(accountSql(sql))
  const findContexts = (queries: ReadonlyArray<ContextQuery>) =>
    Effect.map(context(contextValues(queries)), (rows) => contextsOf(queries.length, rows))
  // One statement per month and set of other tables to check
  const monthly = new Map<string, PreparedStatement<ReceiptsRow>>()
  const remembered = new RememberedContexts()
  return { handOff, sql, prepare, partitionsOf, insertSearching, storeAlone, findContexts, monthly, remembered }
})

type Parts = Effect.Effect.Success<ReturnType<typeof makeParts>>

const makeInsertAll = ({ handOff, insertSearching, monthly, partitionsOf, prepare, sql, storeAlone }: Parts) => {
  const insertInto = (partition: MonthPartition): PreparedStatement<ReceiptsRow> => {
    const key = `${partition.month} ${partition.others.join(" ")}`
    const known = monthly.get(key)
    if (known !== undefined) return known
    const insert = prepare<ReceiptsRow>(batchSql(sql, partition))
    monthly.set(key, insert)
    return insert
  }

  const insertTogether = (partition: MonthPartition, receipts: ReadonlyArray<VersionedReceipt>) =>
    Effect.suspend(() => {
      const begun = handOff?.begin() ?? null
      return insertInto(partition)(receiptValues(receipts, begun)).pipe(
        Effect.onError(() => Effect.sync(() => begun?.cancel())),
        Effect.tap((rows) => Effect.sync(() => settle(begun, rows)))
      )
    })

  /** Stores any receipt, in a transaction too, even one that changes its account. Hands nothing over. */
  const insertAlone = (receipt: VersionedReceipt) =>
    Effect.zipWith(newId, RequestId, (auditId, requestId) => [
      claimsMilestone(receipt.events),
      receipt.deauthorizes,
      auditId,
      requestId
    ]).pipe(Effect.flatMap((further) => storeAlone([...receiptValues([receipt], null), ...further])))

  const insertAll = Effect.fnUntraced(function* (receipts: ReadonlyArray<VersionedReceipt>) {
    const stored = new Map<string, StoredReceipt>()
    for (const [partition, some] of yield* partitionsOf(receipts)) {
      if (partition.kind === "month") addStored(stored, yield* insertTogether(partition, some))
      // Those that are not stored now are in another table, or their tenants have changed: one search of all tables decides
      const missing = some.filter((receipt) => !stored.has(receiptKey(receipt)))
      if (missing.length > 0) addStored(stored, yield* insertSearching(receiptValues(missing, null)))
    }
    return receipts.map((receipt) => stored.get(receiptKey(receipt)))
  })

  return { insertAlone, insertAll }
}

const makeLookUp = Effect.fnUntraced(function* ({ findContexts, remembered }: Parts) {
  const contexts = yield* Batcher.make({
    ...batching,
    keyOf: (query: ContextQuery) => receiptKey(query),
    run: findContexts
  })
  return (query: ContextQuery): Effect.Effect<InboundContext | undefined, SqlError.SqlError> =>
    Effect.withFiberRuntime((fiber) => {
      const alone = isInTransaction(fiber)
      const find = alone ? Effect.map(findContexts([query]), ([found]) => found) : contexts.submit(query)
      return Effect.map(find, (found) => {
        if (found === undefined) return undefined
        // A transaction's reads must not be cached: others can't see them yet
        if (!alone) remembered.put(accountKey(query), found)
        return { ...found, version: null }
      })
    })
})

const makeInsert = Effect.fnUntraced(function* (parts: Parts) {
  const { insertAll, insertAlone } = makeInsertAll(parts)
  const insertions = yield* Batcher.make({
    ...batching,
    keyOf: (receipt: VersionedReceipt) => receiptKey(receipt),
    run: insertAll
  })
  return (receipt: VersionedReceipt): Effect.Effect<StoredReceipt | undefined, SqlError.SqlError> =>
    Effect.withFiberRuntime((fiber) =>
      receipt.deauthorizes || claimsMilestone(receipt.events) || isInTransaction(fiber)
        ? Effect.map(insertAlone(receipt), (rows) => addStored(new Map(), rows).get(receiptKey(receipt)))
        : insertions.submit(receipt)
    )
})

/** `handOff` takes over new deliveries as they are stored; null if they always wait for a claim. */
export const makeInboundRepo = Effect.fnUntraced(function* (handOff: LocalHandOff["Type"] | null) {
  const parts = yield* makeParts(handOff)
  const lookUp = yield* makeLookUp(parts)
  const insert = yield* makeInsert(parts)

  return {
    /** Looks up everything about the account in one round trip. Undefined if it is not linked in this environment. */
    findContext: lookUp,

    /** Like `findContext`, from the cache: it must be stored with `insertCached`. */
    cachedContext: (query: ContextQuery): Effect.Effect<InboundContext | undefined, SqlError.SqlError> => {
      const known = query.sold === null ? parts.remembered.get(accountKey(query)) : undefined
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
        parts.remembered.forget(accountKey(receipt))
        return new TenantChanged()
      }),

    /** In a transaction: locks the tenant's account, so that it is not linked, unlinked or disconnected meanwhile. */
    lockAccount: (tenant: Tenant): Effect.Effect<void, SqlError.SqlError> =>
      Effect.asVoid(parts.sql`SELECT 1 FROM payments.provider_accounts WHERE ${ofTenant(parts.sql, tenant)} FOR UPDATE`)
  }
})

/** Hands over the deliveries stored under the lease, and releases the places reserved for the others, possibly all. */
const settle = (handOff: HandOff | null, [row]: ReadonlyArray<ReceiptsRow>): void => {
  if (row === undefined) handOff?.cancel()
  else handOff?.settle({ rows: row.handed ?? [], storedAt: row.storedAt })
}

const addStored = (stored: Map<string, StoredReceipt>, [row]: ReadonlyArray<ReceiptsRow>) => {
  for (const [environment, providerEventId, first, outcome] of row?.receipts ?? []) {
    stored.set(receiptKey({ environment, providerEventId }), { first, outcome, waits: row?.waits === true })
  }
  return stored
}

/** Key of a receipt's notification: copies share it. */
const receiptKey = ({ environment, providerEventId }: Pick<NewReceipt, "environment" | "providerEventId">): string =>
  `${environment} ${providerEventId}`

const accountKey = ({ accountId, environment }: Pick<NewReceipt, "accountId" | "environment">): string =>
  `${environment} ${accountId}`

export class TenantChanged extends Data.TaggedError("TenantChanged") {}

/**
 * Cache lifetime of a context, in milliseconds; bounded since the overlap of two signing secrets ends with time, not
 * with a change of the tenant's version.
 */
const rememberedFor = 30_000

/** Maximum number of endpoints in all cached contexts together; each can have filters of some kilobytes. */
const maxEndpoints = 10_000

interface Remembered {
  readonly context: InboundContext
  /** By `performance.now()`. */
  readonly lookedUpAt: number
}

/**
 * A cache of accounts' contexts. Holds only facts whose change changes the tenant's version: not what a session offers,
 * and no account that awaits its first payment.
 */
export class RememberedContexts {
  readonly #known = new Map<string, Remembered>()
  #endpoints = 0

  get(key: string): InboundContext | undefined {
    const known = this.#known.get(key)
    if (known === undefined) return undefined
    if (performance.now() - known.lookedUpAt < rememberedFor) return known.context
    this.forget(key)
    return undefined
  }

  put(key: string, context: FoundContext): void {
    if (!context.connected || context.awaitsFirstPayment || context.endpoints.length > maxEndpoints) return
    this.forget(key)
    this.#endpoints += context.endpoints.length
    this.#known.set(key, {
      context: { ...context, offered: null },
      lookedUpAt: performance.now()
    })
    for (const oldest of this.#known.keys()) {
      if (this.#endpoints + this.#known.size <= maxEndpoints) break
      this.forget(oldest)
    }
  }

  forget(key: string): void {
    this.#endpoints -= this.#known.get(key)?.context.endpoints.length ?? 0
    this.#known.delete(key)
  }
}
