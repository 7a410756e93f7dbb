import { SqlClient, SqlError } from "@effect/sql"
import { Effect, FiberRef } from "effect"
import { Gathering } from "../kit/Gathering.ts"
import { newId } from "../kit/Ids.ts"
import { RequestId } from "../kit/Request.ts"
import type { Tenant } from "../kit/Tenant.ts"
import type { Handing, HandOver } from "../publishing/HandOver.ts"
import { isUnavailable } from "../storage/Database.ts"
import { makePreparing } from "../storage/Statements.ts"
import { type ContextQuery, type ContextRow, contextSql, contextsOf, contextValues } from "./ContextStatement.ts"
import {
  accountSql,
  batchSql,
  claimsMilestone,
  type NewReceipt,
  type ReceiptRow,
  receiptValues,
  type StoredReceipt
} from "./ReceiptStatement.ts"

/**
 * What arrives while so many statements are under way gathers for the next; each is one batch. It waits for as long as it
 * would for a connection, and fails as that does.
 */
const gathering = {
  lanes: 2,
  maxBatch: 64,
  patience: {
    millis: 5000,
    error: () => new SqlError.SqlError({ cause: undefined, message: "The database is too slow for what arrives" })
  },
  isOfOne: (error: SqlError.SqlError) => !isUnavailable(error)
} as const

/**
 * The SQL of the slice; nobody outside it imports this.
 *
 * @param handOver takes new deliveries over as they are stored; null if they always wait for a claim
 */
export const makeReceiptsRepo = Effect.fnUntraced(function* (handOver: HandOver["Type"] | null) {
  const sql = yield* SqlClient.SqlClient
  const prepare = yield* makePreparing
  const context = prepare<ContextRow>(contextSql(sql))
  const insertBatch = prepare<ReceiptRow>(batchSql(sql))
  const insertAlone = prepare<ReceiptRow>(accountSql(sql))

  const findContexts = (queries: ReadonlyArray<ContextQuery>) =>
    Effect.map(context(contextValues(queries)), (rows) => contextsOf(queries.length, rows))

  const insertAll = (receipts: ReadonlyArray<NewReceipt>, handing: Handing | null) =>
    insertBatch(receiptValues(receipts, handing)).pipe(
      Effect.onError(() => Effect.sync(() => handing?.cancel())),
      Effect.map((rows) => {
        settle(handing, rows)
        return inOrder(rows)
      })
    )
  const begin = () => handOver?.begin() ?? null

  const contexts = yield* Gathering.make({
    ...gathering,
    keyOf: ({ environment, providerEventId }: ContextQuery) => `${environment} ${providerEventId}`,
    run: (queries) => Effect.withTracerEnabled(findContexts(queries), false)
  })
  const insertions = yield* Gathering.make({
    ...gathering,
    keyOf: ({ environment, providerEventId }: NewReceipt) => `${environment} ${providerEventId}`,
    run: (receipts) => Effect.withTracerEnabled(insertAll(receipts, begin()), false)
  })

  const findOne = (query: ContextQuery) => Effect.map(findContexts([query]), ([found]) => found)
  const insertOne = (receipt: NewReceipt, handing: Handing | null) =>
    Effect.flatMap(insertAll([receipt], handing), onlyOne)

  return {
    /** Everything about the account in one round trip. Undefined if it is not linked in this environment. */
    findContext: (query: ContextQuery) =>
      Effect.flatMap(way, (way) => (way === "gathered" ? contexts.submit(query) : findOne(query))),

    /**
     * Stores a receipt, its events, its deliveries and what paused endpoints missed in one statement, so in one
     * transaction. A second copy of the notification is counted and changes nothing else. Of simultaneous first payments
     * of an account one makes the milestone: the account's row decides. Endpoints that were deleted or paused since they
     * were looked up get no delivery.
     */
    insert: (receipt: NewReceipt): Effect.Effect<StoredReceipt, SqlError.SqlError> => {
      const milestone = claimsMilestone(receipt.events)
      if (!milestone && !receipt.deauthorizes) {
        return Effect.flatMap(way, (way) => {
          if (way === "gathered") return insertions.submit(receipt)
          // Before its transaction is committed, nothing may be sent
          return insertOne(receipt, way === "alone" ? begin() : null)
        })
      }
      return Effect.zipWith(newId, RequestId, (auditId, requestId) => [
        milestone,
        receipt.deauthorizes,
        auditId,
        requestId
      ]).pipe(
        Effect.flatMap((further) => insertAlone([...receiptValues([receipt], null), ...further])),
        Effect.flatMap((rows) => onlyOne(inOrder(rows)))
      )
    },

    /** In a transaction: nobody links, unlinks or disconnects the tenant's account until that ends. */
    lockAccount: ({ environment, organizationId }: Tenant): Effect.Effect<void, SqlError.SqlError> =>
      Effect.asVoid(sql`
        SELECT 1 FROM payments.provider_accounts
        WHERE organization_id = ${organizationId} AND environment = ${environment} FOR UPDATE`)
  }
})

/** How a statement runs: with others that arrive just now; by itself, if the request is traced; within a transaction. */
type Way = "gathered" | "alone" | "inTransaction"

const way: Effect.Effect<Way> = Effect.withFiberRuntime((fiber) =>
  Effect.succeed(
    fiber.currentContext.unsafeMap.has(SqlClient.TransactionConnection.key)
      ? "inTransaction"
      : fiber.getFiberRef(FiberRef.currentTracerEnabled)
        ? "alone"
        : "gathered"
  )
)

const settle = (handing: Handing | null, rows: ReadonlyArray<ReceiptRow>): void => {
  const [first] = rows
  if (handing === null || first === undefined) return
  handing.settle({ ids: rows.flatMap(({ handed }) => handed ?? []), storedAt: first.storedAt })
}

const inOrder = (rows: ReadonlyArray<ReceiptRow>): ReadonlyArray<StoredReceipt> =>
  rows.toSorted((a, b) => a.position - b.position).map(({ first, outcome, waits }) => ({ first, outcome, waits }))

const onlyOne = ([stored]: ReadonlyArray<StoredReceipt>): Effect.Effect<StoredReceipt> =>
  stored === undefined ? Effect.dieMessage("An upsert returns its row") : Effect.succeed(stored)
