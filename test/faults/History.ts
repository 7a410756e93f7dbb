import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { eventuallyDone, eventuallyTrue } from "../harness/Eventually.ts"
import type { Installation } from "./Installation.ts"
import type { Provider } from "./Provider.ts"
import type { Exchange, Receiver } from "./Receiver.ts"

export interface StoredAttempt {
  readonly number: number
  readonly trigger: string
  readonly httpStatus: number | null
  readonly errorCode: string | null
  readonly durationMs: number | null
}

export interface StoredDelivery {
  readonly id: string
  readonly endpointId: string
  readonly providerEventId: string
  readonly state: "queued" | "delivered" | "failed"
  readonly attemptCount: number
  readonly attempts: ReadonlyArray<StoredAttempt>
}

export const storedDeliveries = ({ query }: Pick<Installation, "query">) =>
  query<StoredDelivery>(`
    SELECT d.id, d.endpoint_id AS "endpointId", e.provider_event_id AS "providerEventId", d.state,
      d.attempt_count AS "attemptCount", COALESCE((
        SELECT json_agg(json_build_object('number', a.number, 'trigger', a.trigger, 'httpStatus', a.http_status,
          'errorCode', a.error_code, 'durationMs', a.duration_ms) ORDER BY a.place)
        FROM unnest(d.attempts) WITH ORDINALITY
          AS a (number, trigger, started_at, duration_ms, http_status, error_code, place)
      ), '[]') AS attempts
    FROM payments.deliveries d JOIN payments.events e
      ON e.organization_id = d.organization_id AND e.environment = d.environment AND e.id = d.event_id`)

export const allDelivered = ({ query }: Pick<Installation, "query">, limitMillis = 60_000) =>
  eventuallyDone(
    "all deliveries",
    Effect.map(
      query<{ queued: number }>("SELECT count(*)::int AS queued FROM payments.deliveries WHERE state = 'queued'"),
      ([row]) => row?.queued === 0
    ),
    limitMillis
  )

/** The history of a delivery is whole: every attempt has its row, and there are no more than allowed. */
export const expectTrueHistory = (delivery: StoredDelivery): void => {
  const numbers = delivery.attempts.map(({ number }) => number)
  expect(numbers, JSON.stringify(delivery)).toEqual(Array.from({ length: delivery.attemptCount }, (_, n) => n + 1))
  expect(delivery.attemptCount).toBeLessThanOrEqual(12)
  const made = delivery.attempts.filter(({ errorCode }) => errorCode !== "interrupted")
  expect(made.filter(({ trigger }) => trigger === "automatic").length).toBeLessThanOrEqual(6)
  if (delivery.state === "delivered") {
    // What delivered it is in the history: a slow worker's attempt may be, and another one may have followed it
    expect(
      delivery.attempts.some(
        ({ errorCode, httpStatus }) => errorCode === null && Math.floor((httpStatus ?? 0) / 100) === 2
      )
    ).toBe(true)
  }
  for (const { durationMs } of delivery.attempts) if (durationMs !== null) expect(durationMs).toBeGreaterThanOrEqual(0)
}

export const byDelivery = ({ exchanges }: Receiver): ReadonlyMap<string, ReadonlyArray<Exchange>> => {
  const grouped = new Map<string, Array<Exchange>>()
  for (const exchange of exchanges) {
    const group = grouped.get(exchange.deliveryId)
    if (group === undefined) grouped.set(exchange.deliveryId, [exchange])
    else group.push(exchange)
  }
  for (const group of grouped.values()) group.sort((one, other) => one.startedAt - other.startedAt)
  return grouped
}

/** Deliveries that the consumer confirmed more than once, with the moments of all confirmations but the last. */
export const duplicates = (receiver: Receiver): ReadonlyMap<string, ReadonlyArray<number>> => {
  const found = new Map<string, ReadonlyArray<number>>()
  for (const [id, exchanges] of byDelivery(receiver)) {
    const answered = exchanges.filter((exchange) => exchange.answered)
    if (answered.length > 1)
      found.set(
        id,
        answered.slice(0, -1).map(({ endedAt }) => endedAt)
      )
  }
  return found
}

/** No two attempts of a delivery were under way at once. */
export const expectNoOverlap = (receiver: Receiver): void => {
  for (const [id, exchanges] of byDelivery(receiver)) {
    for (const [index, { startedAt }] of exchanges.entries()) {
      const before = exchanges[index - 1]
      if (before !== undefined) expect([id, startedAt - before.endedAt]).toEqual([id, expect.toSatisfy(isNotNegative)])
    }
  }
}

const isNotNegative = (number: number): boolean => number >= 0

/**
 * Nothing that was confirmed to the provider is lost, nothing is there twice, everything was delivered to each endpoint,
 * and the history is true of what the consumer saw.
 */
export const expectNothingLost = Effect.fnUntraced(function* (
  service: Pick<Installation, "query">,
  provider: Provider,
  receiver: Receiver,
  endpointIds: ReadonlyArray<string>
) {
  const deliveries = yield* storedDeliveries(service)
  const expected = [...provider.confirmed].flatMap((id) => endpointIds.map((endpointId) => `${id} ${endpointId}`))
  expect(deliveries.map((one) => `${one.providerEventId} ${one.endpointId}`).sort()).toEqual(expected.sort())
  const receipts = yield* service.query<{ id: string }>("SELECT provider_event_id AS id FROM payments.receipts")
  expect(receipts.map(({ id }) => id).sort()).toEqual([...provider.confirmed].sort())
  const seen = byDelivery(receiver)
  for (const delivery of deliveries) {
    expect(delivery.state).toBe("delivered")
    expectTrueHistory(delivery)
    const exchanges = seen.get(delivery.id) ?? []
    expect(exchanges.length, JSON.stringify(delivery)).toBeGreaterThanOrEqual(1)
    expect(exchanges.length, JSON.stringify(delivery)).toBeLessThanOrEqual(delivery.attemptCount)
    expect(new Set(exchanges.map(({ eventId }) => eventId)).size).toBe(1)
  }
  expect(seen.size).toBe(deliveries.length)
  return deliveries
})

/**
 * Each repetition has its reason in the history: an attempt whose outcome was lost with its worker, or one whose answer
 * came too late on a busy machine.
 */
export const expectDuplicatesOfCrashes = (
  deliveries: ReadonlyArray<StoredDelivery>,
  receiver: Receiver
): ReadonlyArray<string> => {
  const repeated = duplicates(receiver)
  for (const { attempts, id } of deliveries) {
    const cutOff = attempts.filter(({ errorCode }) => errorCode === "interrupted" || errorCode === "timeout").length
    expect(repeated.get(id)?.length ?? 0, JSON.stringify({ id, attempts })).toBeLessThanOrEqual(cutOff)
  }
  return [...repeated.keys()]
}

/** One more payment reaches its consumers: nobody had to lend the engine a hand. */
export const oneMoreDelivered = Effect.fnUntraced(function* (
  provider: Provider,
  receiver: Receiver,
  endpoints: number
) {
  const before = new Set(receiver.exchanges.map(({ eventId }) => eventId))
  yield* provider.notify
  const news = () => receiver.exchanges.filter(({ eventId }) => !before.has(eventId))
  yield* eventuallyTrue("a new event at its consumers", () => news().length >= endpoints)
})
