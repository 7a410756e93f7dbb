import { SqlClient } from "@effect/sql"
import { Context, Effect, Fiber, Layer } from "effect"
import { openCell } from "../../src/cells/move/CellDatabase.ts"
import { type MoveParts, moveOrganization } from "../../src/cells/move/Move.ts"
import { isOf, movedTables } from "../../src/cells/move/MoveTables.ts"
import type { OrganizationId } from "../../src/kit/Ids.ts"
import { databaseLayer } from "../../src/storage/Database.ts"
import { connectionTo } from "../harness/Connection.ts"
import { newEventId, notification } from "../inbound/Notifications.ts"
import { type Cell, type CellName, masterKeys, type Tenant, TwoCells } from "./TwoCells.ts"

/** What tests of moves share. */

/**
 * Moves in this process.
 *
 * @param onProgress called with what the move tells, before it goes on
 */
export const move = (
  id: OrganizationId,
  from: CellName,
  to: CellName,
  onProgress: (text: string) => Effect.Effect<void> = () => Effect.void,
  keys: MoveParts["masterKeys"] = masterKeys
) =>
  Effect.gen(function* () {
    const { cells, directory } = yield* TwoCells
    const source = yield* openCell(from, cells[from].url)
    const target = yield* openCell(to, cells[to].url)
    const services = yield* Layer.build(databaseLayer({ url: cells[to].url, poolSize: 2 }))
    return yield* moveOrganization(
      {
        source,
        target,
        directory,
        masterKeys: keys,
        author: "root",
        onProgress
      },
      id
    ).pipe(Effect.provideService(SqlClient.SqlClient, Context.get(services, SqlClient.SqlClient)))
  }).pipe(Effect.scoped)

/** Rows of an organization in a cell, by table; only those that have any. */
export const rowsIn = (cell: Cell, id: OrganizationId) =>
  Effect.map(
    Effect.forEach(movedTables, (table) =>
      Effect.map(
        cell.query<{ rows: number }>(
          `SELECT count(*)::int AS rows FROM payments.${table.name} t WHERE ${isOf(table, id)}`
        ),
        ([row]) => [table.name, row?.rows ?? 0] as const
      )
    ),
    (rows) => Object.fromEntries(rows.filter(([, count]) => count > 0))
  )

/** What a move must leave nothing of, at either end. */
export const remainders = (cell: Cell) =>
  cell.query<{ name: string }>(`
    SELECT 'trigger ' || tgname AS name FROM pg_trigger WHERE tgname LIKE 'payments\\_move\\_%' AND tgparentid = 0
      AND NOT EXISTS (SELECT 1 FROM payments.moved_organizations WHERE moved_at > now() - interval '1 day')
    UNION ALL SELECT 'publication ' || pubname FROM pg_publication
    UNION ALL SELECT 'slot ' || slot_name FROM pg_replication_slots
    UNION ALL SELECT 'subscription ' || subname FROM pg_subscription
    UNION ALL SELECT 'move ' || phase FROM payments.moves
    UNION ALL SELECT 'change of ' || table_name FROM payments.move_changed_hours
    UNION ALL SELECT 'parked ' || id FROM payments.delivery_queue WHERE leased_until = 'infinity'`)

/** Keeps a table from being written until the scope ends. */
export const lockTable = (cell: Cell, table: string) =>
  Effect.tap(connectionTo(cell.url), (client) =>
    Effect.promise(() => client.query(`BEGIN; LOCK TABLE payments.${table} IN SHARE MODE`))
  )

/** Registers a destination wherever the organization is. */
export const subscribe = (tenant: Tenant, url: string, name = "Orders") =>
  Effect.gen(function* () {
    const { cellOf } = yield* TwoCells
    const cell = yield* cellOf(tenant.id)
    const answer = yield* cell.request("POST", `/v2/organizations/${tenant.id}/integrations/endpoints`, {
      key: tenant.key,
      headers: { "idempotency-key": crypto.randomUUID() },
      body: { name, url, events: ["payment.succeeded"] }
    })
    if (answer.status !== 200) return yield* Effect.dieMessage(answer.text)
    return { id: String(answer.json["id"]), secret: String(answer.json["signingSecret"]) }
  })

/** One notification of a payment, sent to wherever the organization is until it is confirmed, as the provider does. */
export const notify = (tenant: Tenant, statuses: Array<number> = [], id = newEventId()) =>
  Effect.gen(function* () {
    const { cellOf, notifyAt } = yield* TwoCells
    const body = notification(tenant.accountId, { id })
    for (;;) {
      const status = yield* notifyAt(yield* cellOf(tenant.id), body)
      statuses.push(status)
      if (status === 200) return id
      if (status !== 503) return yield* Effect.dieMessage(`A notification was answered ${status}`)
      yield* Effect.sleep("50 millis")
    }
  })

/** Does something again and again while an effect runs; answers both results. */
export const during = <A, E, R, B, E2, R2>(load: Effect.Effect<B, E2, R2>, effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const results: Array<B> = []
    let isOver = false
    const fiber = yield* Effect.fork(
      Effect.gen(function* () {
        while (!isOver) results.push(yield* load)
      })
    )
    const result = yield* effect
    isOver = true
    yield* Fiber.join(fiber)
    return { result, results }
  })
