import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { queueStart } from "../../src/engine/queue/Claim.ts"
import { idle, QueueBench } from "./QueueBench.ts"

const firstId = "00000000-0000-0000-0000-000000000000"

/** As many due deliveries, each of an endpoint of its own or all of one. They have no event: nothing of them can be sent. */
const waiting = (count: number, endpointId: string | null) =>
  Effect.flatMap(
    QueueBench,
    ({ sql }) => sql`
      INSERT INTO payments.delivery_queue (organization_id, environment, id, endpoint_id, event_id, secret_ids, created_at)
      SELECT gen_random_uuid(), 'sandbox', gen_random_uuid(), COALESCE(${endpointId}::uuid, gen_random_uuid()), 'none',
        ARRAY[gen_random_uuid()], now()
      FROM generate_series(1, ${count}::int)`
  )

layer(QueueBench.layer, { excludeTestServices: true, timeout: "5 minutes" })("very many that wait", (it) => {
  it.effect(
    "in 100,000 lanes are all found by sweeps, each endpoint once",
    () =>
      Effect.gen(function* () {
        const { queues, reset } = yield* QueueBench
        yield* reset
        yield* waiting(100_000, null)
        const found = new Set<string>()
        let [after, sweeps]: [string | null, number] = [firstId, 0]
        while (after !== null) {
          const swept: { readonly last: string | null; readonly due: ReadonlyArray<string> } = yield* queues[0].sweep(
            after,
            1000
          )
          for (const id of swept.due) found.add(id)
          after = swept.last
          sweeps += 1
        }
        expect(found.size).toBe(100_000)
        expect(sweeps).toBe(101)
      }),
    120_000
  )

  it.effect(
    "in one lane, a million of them, are claimed as many as there is room for",
    () =>
      Effect.gen(function* () {
        const { queues, reset } = yield* QueueBench
        yield* reset
        const endpointId = crypto.randomUUID()
        // A statement may take only so long
        yield* Effect.forEach(Array.from({ length: 20 }), () => waiting(50_000, endpointId))
        const { due } = yield* queues[0].sweep(firstId, 1000)
        const lanes = due.map((endpointId) => ({ endpointId, from: queueStart, room: 100 }))
        const { found } = yield* queues[0].claimOfLanes({ lanes, lease: idle.lease })
        expect(found.map(({ count }) => count)).toEqual([100])
      }),
    120_000
  )
})
