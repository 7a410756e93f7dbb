import { expect, layer } from "@effect/vitest"
import { Effect, Option, Scope } from "effect"
import { firstIdAt } from "../../src/kit/Ids.ts"
import { dayRemovalLock } from "../../src/storage/DayPartitions.ts"
import { monthRemovalLock } from "../../src/storage/ReceiptMonths.ts"
import { dayBefore, storePastDays } from "../cells/AgedHistory.ts"
import { startMove } from "../cells/MoveProcess.ts"
import { lockTable, move, notify, remainders, rowsIn, subscribe } from "../cells/MoveScene.ts"
import { type Cell, TwoCells } from "../cells/TwoCells.ts"
import { makeConsumer } from "../harness/Consumer.ts"
import { eventually } from "../harness/Eventually.ts"
import { backdatePartitions } from "../storage/AgedDays.ts"

const days = 4
const perDay = 96
const perHour = perDay / 24

/** An organization with a history of some days, and of today. */
const scene = Effect.gen(function* () {
  const { cells, makeTenant } = yield* TwoCells
  const [first] = yield* cells.north.query<{ day: number }>(
    "SELECT (extract(epoch FROM payments.partitioned_from()) * 1000)::float8 AS day"
  )
  if ((first?.day ?? 0) > dayBefore(days)) {
    for (const statement of backdatePartitions(days)) yield* cells.north.query(statement)
  }
  const tenant = yield* makeTenant("north")
  yield* storePastDays(cells.north, tenant.id, { days, perDay })
  const consumer = yield* makeConsumer
  yield* subscribe(tenant, consumer.url)
  for (let sent = 0; sent < 3; sent += 1) yield* notify(tenant)
  yield* eventually(
    "all is delivered",
    Effect.map(
      cells.north.query("SELECT 1 FROM payments.deliveries WHERE organization_id = $1 AND state <> 'delivered'", [
        tenant.id
      ]),
      (waiting) => (waiting.length === 0 ? Option.some(true) : Option.none())
    ),
    60_000
  )
  const hour = dayBefore(2) + 5 * 3_600_000
  /** Changes a delivery of an hour two days ago; the first or the last of it. */
  const change = (cell: Cell, which: "ASC" | "DESC", code: string) =>
    cell.query(`
      BEGIN;
      SET LOCAL payments.mover = ${cell === cells.south ? "on" : "off"};
      UPDATE payments.deliveries SET last_error_code = '${code}' WHERE organization_id = '${tenant.id}' AND id = (
        SELECT id FROM payments.deliveries WHERE organization_id = '${tenant.id}' AND environment = 'sandbox'
          AND id >= '${firstIdAt(hour)}' AND id < '${firstIdAt(hour + 3_600_000)}' ORDER BY id ${which} LIMIT 1);
      COMMIT`)
  return { tenant, change, before: yield* rowsIn(cells.north, tenant.id) }
})

/** What a move has told: rows by table, of comparisons before and behind the fence. */
const comparedIn = (told: ReadonlyArray<string>) => {
  const fence = told.indexOf("Writes are refused from now on")
  const rowsOf = (texts: ReadonlyArray<string>) =>
    Object.fromEntries(
      texts.flatMap((text) => {
        const [, table, rows] = /^(\w+): (\d+) rows, the same/.exec(text) ?? []
        return table === undefined ? [] : [[table, Number(rows)]]
      })
    )
  return { before: rowsOf(told.slice(0, fence)), behind: rowsOf(told.slice(fence)) }
}

/** Runs something once, when the move tells this. */
const when = (told: Array<string>, beginning: string, effect: Effect.Effect<unknown>) => {
  let isDone = false
  return (text: string) =>
    Effect.suspend(() => {
      told.push(text)
      if (isDone || !text.startsWith(beginning)) return Effect.void
      isDone = true
      return Effect.asVoid(effect)
    })
}

layer(TwoCells.layer, { excludeTestServices: true, timeout: "300 seconds" })(
  "the history of a moved organization",
  (it) => {
    it.scoped(
      "is compared while it works, and behind the fence only the hours that have changed since",
      () =>
        Effect.gen(function* () {
          const { cells } = yield* TwoCells
          const { before, change, tenant } = yield* scene
          const told: Array<string> = []
          const { fencedMillis, rows } = yield* move(
            tenant.id,
            "north",
            "south",
            when(told, "deliveries: ", change(cells.north, "ASC", "changed"))
          )
          expect(fencedMillis).not.toBeNull()
          const compared = comparedIn(told)
          expect(compared.before).toMatchObject({ events: before["events"], deliveries: before["deliveries"] })
          expect(before["deliveries"]).toBe(days * perDay + 3)
          expect(compared.before["receipts_by_month"] ?? 0).toBe(before["receipts_by_month"] ?? 0)
          // Nothing but the changed hour
          expect(compared.behind).toEqual({ deliveries: perHour })
          expect(rows).toBe(
            ["events", "deliveries", "receipts", "receipts_by_month", "audit_log", "idempotency_keys"].reduce(
              (sum, table) => sum + (before[table] ?? 0),
              0
            )
          )
          expect(yield* rowsIn(cells.north, tenant.id)).toEqual({})
          expect(yield* rowsIn(cells.south, tenant.id)).toMatchObject({
            events: before["events"],
            deliveries: before["deliveries"]
          })
          const changed = yield* cells.south.query(
            "SELECT 1 FROM payments.deliveries WHERE organization_id = $1 AND last_error_code = 'changed'",
            [tenant.id]
          )
          expect(changed).toHaveLength(1)
          for (const cell of Object.values(cells)) expect(yield* remainders(cell)).toEqual([])
        }),
      180_000
    )

    it.scoped(
      "is not moved if a row of the copy is another one, before or behind the fence, and then is if it is right",
      () =>
        Effect.gen(function* () {
          const { cells, directory } = yield* TwoCells
          const { before, change, tenant } = yield* scene
          const refusedWhile = (beginning: string, effect: Effect.Effect<unknown>) =>
            Effect.gen(function* () {
              const told: Array<string> = []
              const error = yield* Effect.flip(move(tenant.id, "north", "south", when(told, beginning, effect)))
              expect(error.message).toContain("The copy of deliveries is not the same")
              const statuses: Array<number> = []
              yield* notify(tenant, statuses)
              expect(statuses).toEqual([200])
              return told
            })
          // Of an hour that is long over
          const early = yield* refusedWhile("Comparing", change(cells.south, "ASC", "false"))
          expect(early).not.toContain("Writes are refused from now on")
          // Of one that changes once more while it is copied
          yield* change(cells.south, "ASC", "changed")
          yield* change(cells.north, "ASC", "changed")
          const late = yield* refusedWhile(
            "deliveries: ",
            Effect.zipRight(change(cells.north, "ASC", "again"), change(cells.south, "DESC", "false"))
          )
          expect(late.slice(-2)).toEqual([
            "Writes are refused from now on",
            "Writes are accepted again where they were before"
          ])
          yield* change(cells.north, "DESC", "true")
          yield* move(tenant.id, "north", "south")
          expect(Option.getOrThrow(yield* directory.cellOfOrganization(tenant.id)).cell).toBe("south")
          expect((yield* rowsIn(cells.south, tenant.id))["deliveries"]).toBe((before["deliveries"] ?? 0) + 2)
        }),
      180_000
    )

    it.scoped(
      "keeps its days while it is copied, and loses those that the source has removed before a killed move goes on",
      () =>
        Effect.gen(function* () {
          const { cells } = yield* TwoCells
          const { before, tenant } = yield* scene
          yield* Effect.scoped(
            Effect.gen(function* () {
              const outer = yield* Effect.scope
              const process = yield* Effect.scoped(
                Effect.gen(function* () {
                  // The comparison waits for this, so that the next lock does not come too late
                  yield* lockTable(cells.north, "move_changed_hours")
                  const process = yield* Scope.extend(startMove(tenant.id, "south"), outer)
                  // By then nothing is removed there any longer, as an earlier copy would be
                  yield* process.until("Comparing")
                  // The last copy waits for this
                  yield* Scope.extend(lockTable(cells.south, "organizations"), outer)
                  return process
                })
              )
              yield* process.until("Writes are refused")
              for (const cell of Object.values(cells)) {
                const locks = yield* cell.query<{ free: boolean }>(
                  `SELECT pg_try_advisory_xact_lock(lock) AS free FROM unnest(ARRAY[${dayRemovalLock}, ${monthRemovalLock}]::bigint[]) AS lock`
                )
                expect(locks).toEqual([{ free: false }, { free: false }])
              }
              yield* process.kill
            })
          )
          // As retention does
          const day = new Date(dayBefore(days)).toISOString().slice(0, 10)
          yield* cells.north.query("DELETE FROM payments.days WHERE day = $1::date", [day])
          for (const table of ["events", "deliveries"]) {
            const partition = `payments.${table}_${day.replaceAll("-", "")}`
            yield* cells.north.query(`ALTER TABLE payments.${table} DETACH PARTITION ${partition} CONCURRENTLY`)
            yield* cells.north.query(`DROP TABLE ${partition}`)
          }
          yield* move(tenant.id, "north", "south")
          const after = yield* rowsIn(cells.south, tenant.id)
          expect(after["deliveries"]).toBe((before["deliveries"] ?? 0) - perDay)
          expect(after["events"]).toBe((before["events"] ?? 0) - perDay)
        }),
      180_000
    )
  }
)
