import { Deferred, Duration, Effect, Redacted } from "effect"
import type { AttemptOutcome } from "../../src/engine/attempts/Outcome.ts"
import { type Claim, type ClaimedDelivery, type ClaimOptions, queueStart } from "../../src/engine/queue/Claim.ts"
import type { Queue } from "../../src/engine/queue/Queue.ts"
import { Signal } from "../../src/engine/queue/WakeUp.ts"
import type { WorkerOptions } from "../../src/engine/worker/Endpoints.ts"
import { Worker } from "../../src/engine/worker/Worker.ts"

const options: WorkerOptions = {
  lease: Duration.seconds(15),
  startWithin: Duration.seconds(5),
  concurrency: 4,
  concurrencyPerEndpoint: 4,
  pollInterval: Duration.millis(100),
  drainTimeout: Duration.seconds(1),
  allowLocalDestinations: false,
  userAgent: "test"
}

/** A queue and consumers that do as a test says. */
export class FakeQueue {
  onClaim: (claim: ClaimOptions) => Claim = () => ({
    deliveries: [],
    nextDueInMillis: null,
    more: false,
    place: queueStart,
    askedFor: new Map()
  })
  onFinish: Queue["Type"]["finish"] = () => Effect.void
  readonly released: Array<readonly [id: string, seconds: number]> = []
  /** The ids of the deliveries that were sent, and in which turns of the event loop. */
  readonly sent: Array<unknown> = []
  readonly turns = new Set<number>()
  /** Raised, it announces deliveries. */
  readonly announced = new Signal()
  readonly #answer = Deferred.unsafeMake<AttemptOutcome>(Effect.runSync(Effect.fiberId))
  #turn = 0

  readonly queue: Queue["Type"] = {
    claim: (claim) => Effect.sync(() => this.onClaim(claim)),
    destinations: (deliveries) =>
      Effect.succeed(
        new Map(
          deliveries.map(({ endpointId }) => [
            endpointId,
            {
              url: "https://consumer.example/hook",
              isDeleted: false,
              secrets: [{ id: "s", encrypted: { masterKeyId: "", ciphertext: Buffer.of() }, retiredAt: null }]
            }
          ])
        )
      ),
    finish: (attempts) => this.onFinish(attempts),
    release: (deliveries: ReadonlyArray<ClaimedDelivery>, delay) =>
      Effect.sync(
        () => void this.released.push(...deliveries.map(({ id }) => [id, Duration.toSeconds(delay)] as const))
      )
  }

  /** Answers all attempts, those to come included. */
  answer(outcome: AttemptOutcome): void {
    Deferred.unsafeDone(this.#answer, Effect.succeed(outcome))
  }

  /** Sends nothing; the attempt ends with `answer`. */
  send(deliveryId: unknown): Effect.Effect<AttemptOutcome> {
    return Effect.suspend(() => {
      this.sent.push(deliveryId)
      this.turns.add(this.#turn)
      setImmediate(() => {
        this.#turn += 1
      })
      return Deferred.await(this.#answer)
    })
  }
}

/** A worker on such a queue. Its rounds run if the test runs them. */
export const workerOn = (fake: FakeQueue, changed: Partial<WorkerOptions> = {}) =>
  Worker.make(
    { ...options, ...changed },
    {
      queue: fake.queue,
      transport: { send: ({ headers }) => fake.send(headers["service-delivery-id"]) },
      cipher: {
        encrypt: () => Effect.dieMessage("Nothing is encrypted here"),
        decrypt: () => Effect.succeed(Redacted.make("whsec_test"))
      },
      wakeUp: { announce: Effect.void, await: () => fake.announced.wait() }
    }
  )
