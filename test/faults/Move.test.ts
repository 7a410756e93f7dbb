import { createHmac } from "node:crypto"
import { expect, layer } from "@effect/vitest"
import { Effect, Option } from "effect"
import { runMove, startMove } from "../cells/MoveProcess.ts"
import { during, lockTable, move, notify, remainders, rowsIn, subscribe } from "../cells/MoveScene.ts"
import { type Tenant, TwoCells } from "../cells/TwoCells.ts"
import { makeConsumer } from "../harness/Consumer.ts"
import { eventually } from "../harness/Eventually.ts"
import { notification } from "../inbound/Notifications.ts"

const scene = Effect.gen(function* () {
  const { makeTenant } = yield* TwoCells
  const tenant = yield* makeTenant("north")
  const consumer = yield* makeConsumer
  yield* subscribe(tenant, consumer.url)
  for (let sent = 0; sent < 5; sent += 1) yield* notify(tenant)
  return { tenant, consumer }
})

/** What is delivered when the move is over: each event once, wherever it was stored. */
const delivered = (tenant: Tenant, received: ReadonlyArray<{ readonly headers: object }>, count: number) =>
  eventually(
    `deliveries of ${tenant.id}`,
    Effect.sync(() => {
      const ids = new Set(received.map(({ headers }) => (headers as Record<string, string>)["service-delivery-id"]))
      return ids.size >= count ? Option.some(ids.size) : Option.none()
    }),
    60_000
  )

/** Requires that the organization works in its new cell, with so many deliveries in all, and has left nothing behind. */
const expectMoved = Effect.fnUntraced(function* (
  tenant: Tenant,
  received: Parameters<typeof delivered>[1],
  count: number
) {
  const { north, south } = (yield* TwoCells).cells
  yield* notify(tenant)
  expect(yield* delivered(tenant, received, count)).toBe(count)
  expect(yield* rowsIn(north, tenant.id)).toEqual({})
  for (const cell of [north, south]) expect(yield* remainders(cell)).toEqual([])
})

layer(TwoCells.layer, { excludeTestServices: true, timeout: "300 seconds" })("a move to another cell", (it) => {
  it.scoped(
    "under load loses nothing, repeats only what may be repeated, and leaves nothing behind",
    () =>
      Effect.gen(function* () {
        const { cells, cellOf, directory, makeTenant, notifyAt } = yield* TwoCells
        const { north, south } = cells
        const moving = yield* makeTenant("north")
        const neighbours = [yield* makeTenant("north"), yield* makeTenant("south")]
        const [good, bad, others] = [yield* makeConsumer, yield* makeConsumer, yield* makeConsumer]
        bad.answer(500)
        const endpoint = yield* subscribe(moving, good.url)
        yield* subscribe(moving, bad.url, "Broken")
        for (const neighbour of neighbours) yield* subscribe(neighbour, others.url)

        const statuses: Array<number> = []
        const othersStatuses: Array<number> = []
        const before = yield* Effect.forEach(Array.from({ length: 12 }), () => notify(moving, statuses), {
          concurrency: 4
        })
        // A request under a key, whose answer must still be the answer later
        const rename = (key: string, name: string) =>
          Effect.flatMap(cellOf(moving.id), (cell) =>
            cell.request("PATCH", `/v2/organizations/${moving.id}/integrations/endpoints/${endpoint.id}`, {
              key: moving.key,
              headers: { "idempotency-key": key },
              body: { name }
            })
          )
        const create = Effect.flatMap(cellOf(moving.id), (cell) =>
          cell.request("POST", `/v2/organizations/${moving.id}/integrations/endpoints`, {
            key: moving.key,
            headers: { "idempotency-key": "before-the-move" },
            body: { name: "Failures", url: others.url, events: ["payment.failed"] }
          })
        )
        const first = yield* create
        expect(first.status).toBe(200)

        const answers: Array<number> = []
        let renames = 0
        const load = Effect.all(
          [
            // Another one each time
            Effect.suspend(() => notify(moving, statuses)),
            Effect.forEach(neighbours, (one) => notify(one, othersStatuses), { concurrency: 2 }),
            Effect.suspend(() => rename(`during-${renames++}`, `Name ${renames}`)).pipe(
              Effect.tap(({ status }) => Effect.sync(() => answers.push(status)))
            )
          ],
          { concurrency: 3 }
        ).pipe(
          Effect.map(([id, ids]) => ({ id, ids })),
          Effect.zipLeft(Effect.sleep("20 millis"))
        )
        const { result, results } = yield* during(load, move(moving.id, "north", "south"))
        expect(result).toMatchObject({ from: "north", to: "south" })
        expect(Option.getOrThrow(yield* directory.cellOfOrganization(moving.id)).cell).toBe("south")
        const after = yield* Effect.forEach(Array.from({ length: 5 }), () => notify(moving, statuses), {
          concurrency: 4
        })

        // Nothing but "come again" was answered, and to the others not even that
        expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([])
        expect(answers.filter((status) => status !== 200 && status !== 503)).toEqual([])
        expect(new Set(othersStatuses)).toEqual(new Set([200]))

        // All events arrive, each with a signature of the endpoint's secret
        const wanted = [...before, ...results.map(({ id }) => id), ...after]
        yield* eventually(
          "all deliveries",
          Effect.sync(() => {
            const got = new Set(good.received.map(({ headers }) => String(headers["service-delivery-id"])))
            return got.size >= wanted.length ? Option.some(true) : Option.none()
          }),
          180_000
        )
        const byDelivery = new Map<string, number>()
        for (const { body, headers } of good.received) {
          const id = String(headers["service-delivery-id"])
          byDelivery.set(id, (byDelivery.get(id) ?? 0) + 1)
          const [, time, signature] = /^t=(\d+),v1=([0-9a-f]+)/.exec(String(headers["service-signature"])) ?? []
          expect(createHmac("sha256", endpoint.secret).update(`${time}.${body.toString()}`).digest("hex")).toBe(
            signature
          )
        }
        expect(byDelivery.size).toBe(wanted.length)
        const othersWanted = results.flatMap(({ ids }) => ids).length
        yield* eventually(
          "the others' deliveries",
          Effect.sync(() => (others.received.length >= othersWanted ? Option.some(true) : Option.none()))
        )
        expect(others.received.length).toBe(othersWanted)

        // Rows are in one cell alone, and the receipts of all that was confirmed are there
        expect(yield* rowsIn(north, moving.id)).toEqual({})
        const [{ receipts } = { receipts: 0 }] = yield* south.query<{ receipts: number }>(
          "SELECT count(*)::int AS receipts FROM payments.all_receipts WHERE organization_id = $1 AND outcome = 'delivered'",
          [moving.id]
        )
        expect(receipts).toBe(wanted.length)
        expect(yield* remainders(north)).toEqual([])
        expect(yield* remainders(south)).toEqual([])

        // The answer under an earlier key, byte for byte; another request under it is refused as before
        const again = yield* create
        expect(again.headers.get("idempotent-replayed")).toBe("true")
        expect(again.text).toBe(first.text)

        // The old cell asks to come again: it neither refuses the key, nor takes notifications for nobody's
        const stale = yield* north.request("GET", `/v2/organizations/${moving.id}/integrations/endpoints`, {
          key: moving.key
        })
        expect(stale.status).toBe(503)
        expect(stale.headers.get("retry-after")).not.toBeNull()
        expect(yield* notifyAt(north, notification(moving.accountId))).toBe(503)

        const log = yield* south.query<{ action: string }>(
          "SELECT action FROM payments.audit_log WHERE organization_id = $1 AND action = 'organization.moved'",
          [moving.id]
        )
        expect(log).toHaveLength(1)

        // And back
        const back = yield* move(moving.id, "south", "north")
        expect(back.to).toBe("north")
        expect(yield* rowsIn(south, moving.id)).toEqual({})
        yield* notify(moving)
        expect((yield* rename("after-all", "Home again")).status).toBe(200)
        expect(yield* remainders(south)).toEqual([])
      }),
    480_000
  )

  it.scoped(
    "goes on after it was killed, while copying and behind the fence",
    () =>
      Effect.gen(function* () {
        const { cells, directory } = yield* TwoCells
        const { consumer, tenant } = yield* scene
        for (const text of ["Copying from", "Writes are refused"]) {
          const process = yield* startMove(tenant.id, "south")
          yield* process.until(text)
          yield* process.kill
        }
        const { code, told } = yield* runMove(tenant.id, "south")
        expect(code, told).toBe(0)
        expect(Option.getOrThrow(yield* directory.cellOfOrganization(tenant.id)).cell).toBe("south")
        yield* notify(tenant)
        expect(yield* delivered(tenant, consumer.received, 6)).toBe(6)
        expect(yield* rowsIn(cells.north, tenant.id)).toEqual({})
        expect(yield* remainders(cells.north)).toEqual([])
        expect(yield* remainders(cells.south)).toEqual([])
        const again = yield* runMove(tenant.id, "south")
        expect(again.told).toContain('is in cell "south" already')
        expect(again.code).toBe(0)
        const abort = yield* runMove(tenant.id, "south", "--abort")
        expect(abort.told).toContain("no move of it is under way")
        expect(abort.code).toBe(1)
      }),
    180_000
  )

  it.scoped(
    "is given up behind the fence, and leaves all as it was",
    () =>
      Effect.gen(function* () {
        const { cells, directory } = yield* TwoCells
        const { consumer, tenant } = yield* scene
        yield* delivered(tenant, consumer.received, 5)
        const answer = consumer.hold()
        const before = yield* Effect.scoped(
          Effect.gen(function* () {
            const process = yield* startMove(tenant.id, "south")
            yield* process.until("Copying from")
            // Now, so that the attempt does not end by its time-out before the move parks
            yield* notify(tenant)
            const { delivery_queue: _, ...rows } = yield* rowsIn(cells.north, tenant.id)
            yield* process.until("Attempts under way")
            // The last copy waits for this, so that the move does not end before it is killed
            yield* lockTable(cells.south, "organizations")
            answer()
            yield* process.until("Writes are refused")
            yield* process.kill
            return rows
          })
        )
        const { code, told } = yield* runMove(tenant.id, "south", "--abort")
        expect(code, told).toBe(0)
        expect(Option.getOrThrow(yield* directory.cellOfOrganization(tenant.id))).toMatchObject({
          cell: "north",
          movingTo: null
        })
        expect(yield* rowsIn(cells.north, tenant.id)).toMatchObject(before)
        expect(yield* rowsIn(cells.south, tenant.id)).toEqual({})
        expect(yield* remainders(cells.south)).toEqual([])
        yield* notify(tenant)
        expect(yield* delivered(tenant, consumer.received, 7)).toBe(7)
      }),
    180_000
  )

  it.scoped(
    "is not given up in the other direction once the directory says the target",
    () =>
      Effect.gen(function* () {
        const { cells, directory } = yield* TwoCells
        const { north, south } = cells
        const { consumer, tenant } = yield* scene
        yield* delivered(tenant, consumer.received, 5)
        const history = ["events", "deliveries", "receipts_by_month", "audit_log"]
        const rowsOf = (rows: Readonly<Record<string, number>>) => history.map((name) => rows[name])
        const before = rowsOf(yield* rowsIn(north, tenant.id))
        yield* Effect.scoped(
          Effect.gen(function* () {
            const process = yield* startMove(tenant.id, "south")
            yield* process.until("Copying from")
            // Stops it between the flip and the end of the replication
            yield* lockTable(north, "moved_organizations")
            yield* eventually(
              "the flip",
              directory
                .cellOfOrganization(tenant.id)
                .pipe(Effect.map(Option.filter(({ cell }) => cell === "south")), Effect.orDie),
              60_000
            )
            yield* process.kill
          })
        )
        const back = yield* runMove(tenant.id, "north")
        expect(back.told).toContain("finish it with --to south")
        const abort = yield* runMove(tenant.id, "north", "--abort")
        // What is removed here is replicated to where the organization is
        expect(rowsOf(yield* rowsIn(north, tenant.id))).toEqual(before)
        expect(rowsOf(yield* rowsIn(south, tenant.id))).toEqual(before)
        expect(abort.told).toContain('A move from "north" to "south" is under way')
        expect([back.code, abort.code]).toEqual([1, 1])
        const { code, told } = yield* runMove(tenant.id, "south")
        expect(code, told).toBe(0)
        yield* expectMoved(tenant, consumer.received, 6)
      }),
    180_000
  )

  it.scoped(
    "begins to copy anew if the source has given up the log that the target still needed",
    () =>
      Effect.gen(function* () {
        const { cells } = yield* TwoCells
        const { north, south } = cells
        const { consumer, tenant } = yield* scene
        yield* Effect.scoped(
          Effect.gen(function* () {
            const process = yield* startMove(tenant.id, "south")
            yield* process.until("tables copied")
            yield* process.kill
          })
        )
        // The target is away for longer than the source keeps its log for
        const [{ name } = { name: "" }] = yield* south.query<{ name: string }>(
          "SELECT subname AS name FROM pg_subscription"
        )
        yield* south.query(`ALTER SUBSCRIPTION ${name} DISABLE`)
        yield* north.query("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
        yield* north.query("SELECT pg_reload_conf()")
        yield* eventually(
          "the end of the slot",
          Effect.gen(function* () {
            yield* north.query("SELECT pg_logical_emit_message(true, 'test', 'any')")
            yield* north.query("SELECT pg_switch_wal()")
            yield* north.query("CHECKPOINT")
            const [slot] = yield* north.query<{ status: string }>(
              "SELECT wal_status AS status FROM pg_replication_slots WHERE slot_name = $1",
              [name]
            )
            return slot?.status === "lost" ? Option.some(true) : Option.none()
          }),
          60_000
        )
        yield* north.query("ALTER SYSTEM RESET max_slot_wal_keep_size")
        yield* north.query("SELECT pg_reload_conf()")
        yield* south.query(`ALTER SUBSCRIPTION ${name} ENABLE`)
        const { code, told } = yield* runMove(tenant.id, "south").pipe(
          Effect.timeoutTo({
            duration: "60 seconds",
            onSuccess: (ended) => ended,
            onTimeout: () => ({ code: null, told: "It has not ended" })
          })
        )
        expect(code, told).toBe(0)
        yield* expectMoved(tenant, consumer.received, 6)
      }),
    180_000
  )

  it.scoped(
    "has the organization work on where it was if it loses the target behind the fence, also during the last copy",
    () =>
      Effect.gen(function* () {
        const { north, south } = (yield* TwoCells).cells
        const { consumer, tenant } = yield* scene
        const cut = (condition: string) =>
          eventually(
            "the mover's connection",
            Effect.map(
              south.query(
                `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()
                AND application_name = 'connected-payments move' AND ${condition}`
              ),
              ([ended]) => Option.fromNullable(ended)
            )
          )
        const behindTheFence = (act: Effect.Effect<unknown>) => (text: string) =>
          text.startsWith("Writes are refused") ? Effect.asVoid(act) : Effect.void
        yield* Effect.flip(move(tenant.id, "north", "south", behindTheFence(Effect.orDie(cut("true")))))
        const statuses: Array<number> = []
        yield* notify(tenant, statuses)
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* lockTable(south, "organizations")
            const duringTheLastCopy = Effect.forkDaemon(Effect.orDie(cut("wait_event_type = 'Lock'")))
            yield* Effect.flip(move(tenant.id, "north", "south", behindTheFence(duringTheLastCopy)))
          })
        )
        yield* notify(tenant, statuses)
        expect(statuses).toEqual([200, 200])
        const rows = yield* rowsIn(north, tenant.id)
        expect(rows["events"]).toBe(7)
        const { code, told } = yield* runMove(tenant.id, "south")
        expect(code, told).toBe(0)
        yield* expectMoved(tenant, consumer.received, 8)
      }),
    180_000
  )

  it.scoped(
    "does not wait for a target that takes nothing any longer while writes are refused",
    () =>
      Effect.gen(function* () {
        const { north, south } = (yield* TwoCells).cells
        const { consumer, tenant } = yield* scene
        const subscription = Effect.map(
          south.query<{ name: string }>("SELECT subname AS name FROM pg_subscription"),
          ([row]) => row?.name ?? ""
        )
        const refused = yield* Effect.flip(
          move(tenant.id, "north", "south", (text) =>
            text.startsWith("Writes are refused")
              ? Effect.orDie(Effect.flatMap(subscription, (name) => south.query(`ALTER SUBSCRIPTION ${name} DISABLE`)))
              : Effect.void
          )
        )
        expect(refused.message).toContain('"south" has taken nothing from "north"')
        const statuses: Array<number> = []
        yield* notify(tenant, statuses)
        expect(statuses).toEqual([200])
        yield* south.query(`ALTER SUBSCRIPTION ${yield* subscription} ENABLE`)
        const { code, told } = yield* runMove(tenant.id, "south")
        expect(code, told).toBe(0)
        expect(yield* rowsIn(north, tenant.id)).toEqual({})
        yield* expectMoved(tenant, consumer.received, 7)
      }),
    180_000
  )

  it.scoped(
    "is refused before it changes anything, if it can't succeed",
    () =>
      Effect.gen(function* () {
        const { cells, directory, makeTenant } = yield* TwoCells
        const tenant = yield* makeTenant("north")
        const rehearsed = yield* runMove(tenant.id, "south", "--dry-run")
        expect(rehearsed.told).toContain("Nothing was changed")
        // A person of the organization is known to the target
        const [{ email } = { email: "" }] = yield* cells.north.query<{ email: string }>(
          `SELECT p.email FROM payments.memberships m JOIN payments.people p ON p.id = m.person_id WHERE m.organization_id = $1`,
          [tenant.id]
        )
        yield* cells.south.query(`INSERT INTO payments.people (id, email) VALUES (gen_random_uuid(), $1)`, [email])
        const refused = yield* runMove(tenant.id, "south")
        expect(refused.code).toBe(1)
        expect(refused.told).toContain(email)
        yield* cells.south.query(`DELETE FROM payments.people WHERE email = $1`, [email])
        // Another schema
        yield* cells.south.query(`INSERT INTO payments.migrations (migration_id, name) VALUES (9999, 'later')`)
        expect((yield* runMove(tenant.id, "south")).told).toContain("9999_later is newer")
        yield* cells.south.query(`DELETE FROM payments.migrations WHERE migration_id = 9999`)
        expect((yield* runMove(tenant.id, "nowhere" as "south")).told).toContain("CELL_DATABASE_URLS does not name")
        expect(Option.getOrThrow(yield* directory.cellOfOrganization(tenant.id)).movingTo).toBeNull()
        for (const cell of Object.values(cells)) expect(yield* remainders(cell)).toEqual([])
      }),
    180_000
  )
})
