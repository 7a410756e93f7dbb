import { Effect } from "effect"
import { eventuallyDone } from "../harness/Eventually.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { newEventId, notification } from "../inbound/Notifications.ts"
import {
  allDelivered,
  duplicates,
  expectNoOverlap,
  expectNothingLost,
  oneMoreDelivered,
  storedDeliveries
} from "./History.ts"
import { type Installation, installation, ofRole } from "./Installation.ts"
import { makeProvider, postOnce } from "./Provider.ts"
import { preloading } from "./preload/Preload.ts"
import { Randomness } from "./Randomness.ts"
import { makeReceiver } from "./Receiver.ts"

/** What each jump sets the clock off by, in seconds: ahead by two days, back by a year, right again. */
const offsets = [2 * 86_400, -365 * 86_400, 0]

const jump = (service: Installation, role: "api" | "worker") =>
  Effect.sync(() => {
    for (const { child } of ofRole(service, role)) child.kill("SIGUSR2")
  })

/** How far the start of the latest attempt is from the database's time, in seconds. */
const clockOfAttempts = ({ query }: Installation) =>
  Effect.map(
    query<{ seconds: number }>(`
      SELECT EXTRACT(EPOCH FROM a.started_at - d.finished_at)::float8 AS seconds
      FROM payments.deliveries d CROSS JOIN LATERAL unnest(d.attempts) AS a
      ORDER BY d.finished_at DESC LIMIT 1`),
    ([row]) => row?.seconds ?? 0
  )

/**
 * Covered: wall clocks of processes that jump. Leases, retries and expiry go by the database's clock, which is the
 * machine's own and is not moved here.
 */
describe("a process whose wall clock jumps", () => {
  it.scopedLive("delivers once, retries when due, and takes notifications again once its clock is right", function* () {
    const random = new Randomness()
    const settings = {
      DELIVERY_TIMEOUT: "10 seconds",
      FAULTS_CLOCK_OFFSETS: offsets.join(","),
      ...preloading("ShiftedClock")
    }
    const service = yield* installation([
      { role: "api", settings },
      { role: "worker", settings }
    ])
    const receiver = yield* makeReceiver(random, 300)
    const endpointIds = yield* Effect.forEach(["a", "b"], (path) => service.subscribe(receiver.url(path)))
    const provider = makeProvider(service, random)

    // The worker's clock, with attempts under way, leases that run and a connection that is kept open
    yield* provider.loading(
      20,
      Effect.forEach(offsets, () => Effect.delay(jump(service, "worker"), "800 millis")).pipe(
        Effect.zipRight(Effect.sleep("800 millis"))
      )
    )
    yield* allDelivered(service)
    yield* expectNothingLost(service, provider, receiver, endpointIds)
    expectNoOverlap(receiver)
    expect([...duplicates(receiver)]).toEqual([])
    for (const { attemptCount } of yield* storedDeliveries(service)) expect(attemptCount).toBe(1)
    yield* oneMoreDelivered(provider, receiver, endpointIds.length)
    yield* allDelivered(service)
    expect(Math.abs(yield* clockOfAttempts(service))).toBeLessThan(60)

    // The API's clock: a signature is judged by it, so what comes is refused and nothing stored, until it is right
    const [api] = ofRole(service, "api")
    if (api === undefined) return yield* Effect.dieMessage("No API")
    const newBody = () => notification(service.accountId, { id: newEventId() })
    const answered = (body: string) => postOnce(api.baseUrl, body, service.webhookSecret)
    const answeredIs = (status: number, body: string) =>
      eventuallyDone(
        `the answer ${status}`,
        Effect.map(answered(body), (answered) => answered === status)
      )
    const body = newBody()
    for (const offset of offsets) {
      yield* jump(service, "api")
      if (offset === 0) break
      // What comes before the process has heard of the jump is taken; what comes afterwards is not
      yield* answeredIs(400, newBody())
      const before = (yield* storedDeliveries(service)).length
      for (let time = 0; time < 3; time++) expect(yield* answered(body)).toBe(400)
      expect((yield* storedDeliveries(service)).length).toBe(before)
    }
    const before = (yield* storedDeliveries(service)).length
    yield* answeredIs(200, body)
    yield* allDelivered(service)
    expect((yield* storedDeliveries(service)).length).toBe(before + endpointIds.length)
  })
})
