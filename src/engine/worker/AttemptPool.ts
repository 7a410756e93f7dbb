import { Effect, Exit, FiberSet, Scheduler, type Scope } from "effect"
import { discardingTracer } from "../../platform/telemetry/Spans.ts"

/** Options of an `AttemptPool`. */
export interface AttemptPoolOptions<Attempt, End> {
  /** How many idle fibers are kept. */
  readonly keep: number
  /** Makes one attempt. A defect ends the attempt, not its fiber. */
  readonly make: (attempt: Attempt) => Effect.Effect<End>
  /** Called once for each attempt, unless the pool is closed first. Returns at once and doesn't throw. */
  readonly onEnd: (attempt: Attempt, exit: Exit.Exit<End>) => void
}

/**
 * A supervised pool of long-lived fibers, each of which makes one attempt after another. There are as many as were ever
 * needed at once; `keep` idle ones remain. They end with the scope, which interrupts their attempts.
 *
 * An attempt is handed over directly: to the fiber whose attempt has just ended, to an idle one, or to a new one.
 * Effect's `Queue` between them, or a fork for each attempt, costs twice as much.
 */
export class AttemptPool<Attempt, End> {
  readonly #options: AttemptPoolOptions<Attempt, End>
  readonly #fork: (fiber: Effect.Effect<void>) => void
  readonly #idle: Array<(attempt: Effect.Effect<Attempt>) => void> = []
  /** Whether a fiber's attempt is just ending, and that fiber's next attempt. */
  #ending = false
  #next: Attempt | null = null

  private constructor(options: AttemptPoolOptions<Attempt, End>, fork: (fiber: Effect.Effect<void>) => void) {
    this.#options = options
    this.#fork = fork
  }

  /** Creates an empty pool. Its fibers have the calling fiber's clock and randomness, and make no spans themselves. */
  static readonly make = <Attempt, End>(
    options: AttemptPoolOptions<Attempt, End>
  ): Effect.Effect<AttemptPool<Attempt, End>, never, Scope.Scope> =>
    Effect.map(
      FiberSet.makeRuntime<never, void>(),
      (fork) => new AttemptPool(options, (fiber) => void fork(inPool(fiber)))
    )

  /** Makes an attempt on a fiber of the pool. Returns at once. */
  run(attempt: Attempt): void {
    if (this.#ending && this.#next === null) {
      this.#next = attempt
      return
    }
    const hand = this.#idle.pop()
    if (hand === undefined) this.#fork(this.#fiber(attempt))
    else hand(Effect.succeed(attempt))
  }

  /** A fiber that makes this attempt first. Everything that it repeats is created here, once. */
  #fiber(first: Attempt): Effect.Effect<void> {
    let attempt = first
    const end = (exit: Exit.Exit<End>): Effect.Effect<void> => {
      this.#ending = true
      this.#options.onEnd(attempt, exit)
      this.#ending = false
      return Effect.void
    }
    const succeeded = (value: End) => end(Exit.succeed(value))
    const live = (one: Attempt): Effect.Effect<void> => {
      attempt = one
      return Effect.flatMap(this.#begin(one), succeeded)
    }
    const idling = Effect.flatMap(
      Effect.async<Attempt>((resume) => void this.#idle.push(resume)),
      live
    )
    const round = (): Effect.Effect<void> => {
      const next = this.#next
      this.#next = null
      return next === null ? idling : live(next)
    }
    // Not `Effect.forever`, which yields to other fibers in each round: an attempt's exchange does so anyway
    const rounds = Effect.whileLoop({
      while: () => this.#next !== null || this.#idle.length < this.#options.keep,
      body: round,
      step: () => {}
    })
    // Around the loop, not around each attempt, which would cost as much as all the rest
    const goingOn = (work: Effect.Effect<void>): Effect.Effect<void> =>
      Effect.catchAllCause(work, (cause) => Effect.zipRight(end(Exit.failCause(cause)), goingOn(rounds)))
    return goingOn(
      Effect.zipRight(
        Effect.suspend(() => live(first)),
        rounds
      )
    )
  }

  #begin(attempt: Attempt): Effect.Effect<End> {
    try {
      return this.#options.make(attempt)
    } catch (defect) {
      return Effect.die(defect)
    }
  }
}

const mixed = new Scheduler.MixedScheduler(2048)

/**
 * Effect's default scheduler, but with one queue for all fibers of pools: fibers resumed while one event is handled
 * continue together. Effect itself has a queue and a microtask for each fiber, in a table that keeps the queues of
 * ended fibers until a full garbage collection.
 */
export const sharedScheduler: Scheduler.Scheduler = Scheduler.make(
  (task, priority) => mixed.scheduleTask(task, priority),
  mixed.shouldYield
)

const inPool = (fiber: Effect.Effect<void>): Effect.Effect<void> =>
  fiber.pipe(
    Effect.withTracerEnabled(false),
    Effect.withTracer(discardingTracer),
    Effect.withScheduler(sharedScheduler)
  )
