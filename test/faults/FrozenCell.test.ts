import { readFile } from "node:fs/promises"
import { expect, layer } from "@effect/vitest"
import { Effect, Fiber, Option } from "effect"
import { startRouter } from "../cells/CellsBed.ts"
import { notify, subscribe } from "../cells/MoveScene.ts"
import { type Cell, type Tenant, TwoCells } from "../cells/TwoCells.ts"
import { makeConsumer } from "../harness/Consumer.ts"
import { eventually } from "../harness/Eventually.ts"
import { frozen } from "./DatabaseServer.ts"

/** The first process of a cell's database server. */
const serverOf = (cell: Cell) =>
  Effect.gen(function* () {
    const [row] = yield* cell.query<{ pid: number }>("SELECT pg_backend_pid() AS pid")
    const status = yield* Effect.promise(() => readFile(`/proc/${row?.pid}/status`, "utf8"))
    return Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1])
  })

layer(TwoCells.layer, { excludeTestServices: true, timeout: "300 seconds" })(
  "a cell whose database stands still",
  (it) => {
    it.scoped(
      "is answered 503 for, while the other cell and the router work on, and is back as soon as it moves again",
      () =>
        Effect.gen(function* () {
          const { cells, directoryUrl, makeTenant } = yield* TwoCells
          const [works, waits] = [yield* makeTenant("north"), yield* makeTenant("south")]
          const consumer = yield* makeConsumer
          yield* subscribe(works, consumer.url)
          const router = yield* startRouter(directoryUrl)
          const list = (tenant: Tenant) =>
            Effect.map(
              router.request("GET", `/v2/organizations/${tenant.id}/integrations/endpoints`, { key: tenant.key }),
              ({ status }) => status
            )
          expect([yield* list(works), yield* list(waits)]).toEqual([200, 200])
          const server = yield* serverOf(cells.south)
          yield* Effect.scoped(
            Effect.gen(function* () {
              yield* frozen(server)
              // More of them than a pool has connections
              const stuck = yield* Effect.fork(
                Effect.all(
                  Array.from({ length: 30 }, () => list(waits)),
                  { concurrency: "unbounded" }
                )
              )
              let isOver = false
              yield* Effect.forkScoped(
                Effect.ensuring(
                  Fiber.await(stuck),
                  Effect.sync(() => (isOver = true))
                )
              )
              const statuses: Array<number> = []
              let sent = 0
              while (!isOver) {
                const began = Date.now()
                statuses.push(yield* list(works), (yield* router.request("GET", "/health/ready")).status)
                expect(Date.now() - began).toBeLessThan(5000)
                yield* notify(works)
                sent += 1
                yield* Effect.sleep("100 millis")
              }
              expect(new Set(statuses)).toEqual(new Set([200]))
              expect(new Set(yield* Fiber.join(stuck))).toEqual(new Set([503]))
              yield* eventually(
                "deliveries of the other cell",
                Effect.sync(() => (consumer.received.length >= sent ? Option.some(sent) : Option.none())),
                60_000
              )
            })
          )
          yield* eventually(
            "the cell's return",
            Effect.map(list(waits), (status) => (status === 200 ? Option.some(status) : Option.none())),
            60_000
          )
        }),
      240_000
    )
  }
)
