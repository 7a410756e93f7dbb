import { expect, layer } from "@effect/vitest"
import { Effect, Option } from "effect"
import { runMove, startMove } from "../cells/MoveProcess.ts"
import { during, notify, remainders, rowsIn, subscribe } from "../cells/MoveScene.ts"
import { TwoCells } from "../cells/TwoCells.ts"
import { makeConsumer } from "../harness/Consumer.ts"
import { eventually } from "../harness/Eventually.ts"

const kills = 20

/** The longest time that a move is left alive, in milliseconds: about what one takes on a quiet machine. */
const longest = 6000

layer(TwoCells.layer, { excludeTestServices: true, timeout: "300 seconds" })("a move that is killed", (it) => {
  it.scoped(
    `${kills} times, at any point, comes to its end under load, and loses nothing`,
    () =>
      Effect.gen(function* () {
        const { cells, directory, makeTenant } = yield* TwoCells
        const tenant = yield* makeTenant("north")
        const consumer = yield* makeConsumer
        yield* subscribe(tenant, consumer.url)
        const history = yield* Effect.forEach(Array.from({ length: 50 }), () => notify(tenant))
        let to: "north" | "south" = "south"
        const load = Effect.zipLeft(
          // Another one each time
          Effect.suspend(() => notify(tenant)),
          Effect.sleep("50 millis")
        )
        const { results } = yield* during(
          load,
          Effect.gen(function* () {
            for (let killed = 0; killed < kills; killed += 1) {
              const process = yield* startMove(tenant.id, to)
              // Some of them come to their end before: then back again
              const code = yield* process.ended.pipe(
                Effect.timeoutTo({
                  duration: Math.random() * longest,
                  onSuccess: (ended) => ended,
                  onTimeout: () => undefined
                })
              )
              if (code === undefined) yield* process.kill
              else {
                expect(code, process.told()).toBe(0)
                to = to === "south" ? "north" : "south"
              }
            }
            // One that was killed just before its end leaves nothing to do
            const last = yield* runMove(tenant.id, to)
            expect(last.code, last.told).toBe(0)
          })
        )
        const wanted = history.length + results.length
        yield* eventually(
          "all deliveries",
          Effect.sync(() => {
            const ids = new Set(consumer.received.map(({ headers }) => headers["service-delivery-id"]))
            return ids.size >= wanted ? Option.some(true) : Option.none()
          }),
          60_000
        )
        const [here, there] = to === "south" ? [cells.south, cells.north] : [cells.north, cells.south]
        expect(Option.getOrThrow(yield* directory.cellOfOrganization(tenant.id)).cell).toBe(to)
        expect(yield* rowsIn(there, tenant.id)).toEqual({})
        const [{ receipts } = { receipts: 0 }] = yield* here.query<{ receipts: number }>(
          "SELECT count(*)::int AS receipts FROM payments.all_receipts WHERE organization_id = $1",
          [tenant.id]
        )
        expect(receipts).toBe(wanted)
        for (const cell of [here, there]) expect(yield* remainders(cell)).toEqual([])
      }),
    600_000
  )
})
