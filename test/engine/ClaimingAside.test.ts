import { describe, expect, vi } from "@effect/vitest"
import { Duration, Effect, TestClock } from "effect"
import { type Claim, type ClaimOptions, queueStart } from "../../src/engine/queue/Claim.ts"
import { ClaimingAside } from "../../src/engine/worker/Claiming.ts"
import { LoopHealth } from "../../src/engine/worker/Held.ts"
import { EndpointPace } from "../../src/engine/worker/Limits.ts"
import { EndpointId, OrganizationId } from "../../src/platform/kit/Ids.ts"
import { it } from "../harness/Tests.ts"

const nothingDue: Claim = {
  deliveries: [],
  nextDueInMillis: null,
  more: false,
  place: queueStart,
  askedFor: new Map()
}

/** Claims aside of a worker with one slow endpoint, and what they ask for. The scope ends them. */
const started = (isBehind: () => boolean) =>
  Effect.gen(function* () {
    // Both clocks that it looks at are the test's
    let now = 0
    yield* Effect.acquireRelease(
      Effect.sync(() => vi.spyOn(performance, "now").mockImplementation(() => now)),
      (spy) => Effect.sync(() => spy.mockRestore())
    )
    const passMillis = (millis: number) =>
      Effect.repeatN(
        Effect.suspend(() => {
          now += 15
          return TestClock.adjust("15 millis")
        }),
        millis / 15 - 1
      )
    const pace = new EndpointPace({ cap: 64, first: 4 })
    pace.noteSlow(EndpointId.make(crypto.randomUUID()), OrganizationId.make(crypto.randomUUID()), performance.now())
    const claims: Array<ClaimOptions> = []
    const aside = new ClaimingAside({
      options: { lease: Duration.seconds(15), concurrency: 256, concurrencyPerEndpoint: 64 },
      queue: {
        claim: (options) =>
          Effect.sync(() => {
            claims.push(options)
            return nothingDue
          })
      },
      recording: { caughtUp: () => Effect.void },
      attempts: { aside: 0, caps: () => new Map(), held: () => 0, *lanes() {}, pace },
      begin: () => Effect.void,
      health: new LoopHealth("starts"),
      isBehind
    })
    yield* Effect.forkScoped(Effect.forever(aside.round))
    const of = (look: ClaimOptions["look"]) => claims.filter((claim) => claim.look === look)
    return { aside, newest: () => of("newest"), passMillis, slow: () => of("asked") }
  })

describe("claims aside", () => {
  it.scoped(
    "take the newest again and again while the worker is behind, and ask for slow endpoints less often",
    function* () {
      const { aside, newest, passMillis, slow } = yield* started(() => true)
      aside.noteNews()
      yield* passMillis(1500)
      expect(newest().length).toBeGreaterThan(20)
      expect(newest().length).toBeGreaterThan(2 * slow().length)
      expect(slow().length).toBeGreaterThan(0)
      // Few of one endpoint, of as many endpoints as there is room for
      expect(newest().map(({ limit, perEndpoint }) => [limit, perEndpoint])).toContainEqual([256, 2])
      expect(slow()[0]).toMatchObject({ perEndpoint: 16, askedFor: [{ room: 16 }] })
    }
  )

  it.scoped("ask for slow endpoints although the worker catches up before it is their turn again", function* () {
    let behind = true
    const { aside, newest, passMillis, slow } = yield* started(() => behind)
    aside.noteNews()
    yield* passMillis(150)
    expect(slow()).toHaveLength(1)
    expect(newest().length).toBeGreaterThan(1)
    behind = false
    yield* passMillis(150)
    expect(slow()).toHaveLength(2)
  })

  it.scoped("rest without news", function* () {
    const { aside, newest, passMillis, slow } = yield* started(() => false)
    yield* passMillis(300)
    expect([newest().length, slow().length]).toEqual([0, 0])
    aside.noteNews()
    yield* passMillis(300)
    expect(slow()).toHaveLength(1)
    expect(newest()).toEqual([])
  })
})
