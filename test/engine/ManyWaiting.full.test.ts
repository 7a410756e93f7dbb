import { Effect } from "effect"
import { EndpointId } from "../../src/platform/kit/Ids.ts"
import { expect, layer } from "../harness/Tests.ts"
import { claimFrom, idle, QueueBench } from "./QueueBench.ts"

const many = 100_000

/** Rows of that many endpoints, or of one of them, due for a minute; all of one event. */
const fill = Effect.fnUntraced(function* (endpointOf: string) {
  const { makeEndpoint, reset, seed, sql } = yield* QueueBench
  yield* reset
  const endpoint = yield* makeEndpoint
  yield* seed(endpoint, { dueInSeconds: -60 })
  yield* sql`
    INSERT INTO payments.delivery_queue
      (organization_id, environment, id, endpoint_id, event_id, secret_ids, next_attempt_at, created_at)
    SELECT organization_id, environment, uuidv7(), ${sql.literal(endpointOf)}, event_id, secret_ids,
      next_attempt_at - n * interval '1 millisecond', created_at
    FROM payments.delivery_queue, generate_series(2, ${many}) AS n`
  return endpoint
})

layer(QueueBench.layer)(`a queue of ${many}`, (it) => {
  it.effect(
    "is shared by two workers, if each waits for an endpoint of its own: one of each, none twice",
    function* () {
      yield* fill("uuidv7()")
      const { queues } = yield* QueueBench
      const claims = Array.from({ length: 40 }, (_, index) => claimFrom(queues[index % 2 === 0 ? 0 : 1], idle))
      const claimed = (yield* Effect.all(claims)).flat()
      expect(claimed).toHaveLength(40 * idle.limit)
      expect(new Set(claimed.map(({ endpointId }) => endpointId)).size).toBe(claimed.length)
    }
  )

  it.effect("holds up no other endpoint, if all wait for one at its cap", function* () {
    const { id } = yield* fill("endpoint_id")
    const { makeEndpoint, queues, seed } = yield* QueueBench
    const [single] = yield* seed(yield* makeEndpoint)
    const capped = { ...idle, perEndpoint: 16, inFlight: new Map([[EndpointId.make(id), 16]]) }
    const inOrder = yield* queues[0].claim({ ...capped, hides: true })
    expect([inOrder.deliveries, inOrder.more]).toEqual([[], true])
    const newest = yield* queues[0].claim({ ...capped, look: "newest" })
    expect(newest.deliveries.map((delivery) => delivery.id)).toEqual([single])
  })
})
