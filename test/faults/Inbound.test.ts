import { rename, stat, symlink, unlink } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Fiber } from "effect"
import { connectionTo } from "../harness/Connection.ts"
import type { Cut } from "../harness/CuttingProxy.ts"
import { eventuallyDone, eventuallyTrue } from "../harness/Eventually.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { newEventId, notification } from "../inbound/Notifications.ts"
import { type Installation, installation } from "./Installation.ts"
import { postOnce } from "./Provider.ts"

const makeNotification = (service: Installation) => {
  const id = newEventId()
  const body = notification(service.accountId, { id })
  return { id, send: postOnce(service.local.baseUrl, body, service.webhookSecret) }
}

type Sent = ReturnType<typeof makeNotification>

const stored = ({ query }: Installation, { id }: Sent) =>
  Effect.map(
    query<{ receipts: number; events: number; deliveries: number }>(
      `SELECT
         (SELECT count(*)::int FROM payments.receipts WHERE provider_event_id = $1) AS receipts,
         (SELECT count(*)::int FROM payments.events WHERE provider_event_id = $1) AS events,
         (SELECT count(*)::int FROM payments.deliveries d JOIN payments.events e
            ON e.organization_id = d.organization_id AND e.environment = d.environment AND e.id = d.event_id
          WHERE e.provider_event_id = $1) AS deliveries`,
      [id]
    ),
    ([row]) => row
  )

const nothing = { receipts: 0, events: 0, deliveries: 0 }
const once = { receipts: 1, events: 1, deliveries: 2 }

/** The provider comes again, until it is confirmed; however often, it is stored once. */
const expectStoredOnceAfterwards = Effect.fnUntraced(function* (service: Installation, sent: Sent) {
  yield* eventuallyDone(
    "the provider's retry",
    Effect.map(sent.send, (status) => {
      expect([200, 503]).toContain(status)
      return status === 200
    })
  )
  expect(yield* sent.send).toBe(200)
  expect(yield* stored(service, sent)).toEqual(once)
})

/** While the effect runs, a table is locked: whatever would change it waits. */
const withLockedTable = <A, E, R>({ server }: Installation, table: string, effect: Effect.Effect<A, E, R>) =>
  Effect.scoped(
    Effect.flatMap(connectionTo(server.url), (client) =>
      Effect.zipRight(
        Effect.promise(() => client.query(`BEGIN; LOCK TABLE payments.${table} IN ACCESS EXCLUSIVE MODE`)),
        effect
      )
    )
  )

/**
 * While the effect runs, the disk is full for the deliveries: their file is one that takes nothing, so that the server
 * itself finds no space when it extends the table.
 */
const withFullDisk = <A, E, R>(service: Installation, effect: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.gen(function* () {
      yield* service.query("TRUNCATE payments.deliveries, payments.delivery_queue")
      const [row] = yield* service.query<{ directory: string; path: string }>(
        "SELECT current_setting('data_directory') AS directory, pg_relation_filepath('payments.deliveries_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')) AS path"
      )
      const file = join(row?.directory ?? "", row?.path ?? "")
      yield* Effect.promise(async () => {
        expect((await stat(file)).size).toBe(0)
        await rename(file, `${file}.aside`)
        await symlink("/dev/full", file)
      })
      return file
    }),
    () => effect,
    (file) =>
      Effect.promise(async () => {
        await unlink(file)
        await rename(`${file}.aside`, file)
      }).pipe(
        // Sessions that hold the full disk's file let go of it
        Effect.zipRight(
          service.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
          )
        )
      )
  )

describe("the provider's entry", () => {
  it.scopedLive.skipIf(process.platform !== "linux")(
    "answers 503 and stores nothing by halves while its database fails, and the provider's retry is stored once (skipped unless on Linux, for its signals)",
    function* () {
      const service = yield* installation([{ role: "api" }], { DATABASE_POOL_SIZE: "2" })
      const { proxy, server } = service
      for (const name of ["a", "b"]) yield* service.subscribe(`http://127.0.0.1:9/${name}`)

      // Stopped, and started again
      const whileStopped = makeNotification(service)
      yield* server.stop
      expect(yield* whileStopped.send).toBe(503)
      yield* server.start
      expect(yield* stored(service, whileStopped)).toEqual(nothing)
      yield* expectStoredOnceAfterwards(service, whileStopped)

      // Restarted under many
      const many = Array.from({ length: 20 }, () => makeNotification(service))
      const sending = yield* Effect.fork(
        Effect.forEach(many, (one, n) => Effect.delay(one.send, 40 * n), { concurrency: "unbounded" })
      )
      yield* Effect.sleep("200 millis")
      yield* server.crash
      yield* server.start
      expect((yield* Fiber.join(sending)).filter((status) => status !== 200 && status !== 503)).toEqual([])
      for (const one of many) yield* expectStoredOnceAfterwards(service, one)

      // Cut before the statement that stores arrives, and between its commit and the answer to us
      const cuts: ReadonlyArray<readonly [Cut, object]> = [
        ["before", nothing],
        ["after", once]
      ]
      for (const [cut, left] of cuts) {
        const inTheMiddle = makeNotification(service)
        // Only the statement that stores names the type
        proxy.cutAt("payment_intent.succeeded", cut)
        expect(yield* inTheMiddle.send).toBe(503)
        expect([cut, yield* stored(service, inTheMiddle)]).toEqual([cut, left])
        yield* expectStoredOnceAfterwards(service, inTheMiddle)
      }

      // No connection is left: two wait for the table, the others for a connection, as long as they may
      const waiting = Array.from({ length: 6 }, () => makeNotification(service))
      const held = yield* withLockedTable(
        service,
        "receipts",
        Effect.gen(function* () {
          const statuses: Array<number> = []
          const held = yield* Effect.fork(
            Effect.forEach(
              waiting,
              ({ send }) => Effect.tap(send, (status) => Effect.sync(() => statuses.push(status))),
              { concurrency: "unbounded" }
            )
          )
          yield* eventuallyTrue("answers", () => statuses.length >= 4)
          expect(statuses).toEqual([503, 503, 503, 503])
          return held
        })
      )
      expect((yield* Fiber.join(held)).sort()).toEqual([200, 200, 503, 503, 503, 503])
      for (const one of waiting) yield* expectStoredOnceAfterwards(service, one)

      // No space is left for the last of the rows that belong together
      const onFullDisk = makeNotification(service)
      yield* withFullDisk(
        service,
        Effect.gen(function* () {
          expect(yield* onFullDisk.send).toBe(503)
          expect(yield* stored(service, onFullDisk)).toEqual(nothing)
        })
      )
      yield* expectStoredOnceAfterwards(service, onFullDisk)
    }
  )
})
