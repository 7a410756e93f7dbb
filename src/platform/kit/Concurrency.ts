import { performance } from "node:perf_hooks"
import {
  Cause,
  Chunk,
  Clock,
  Context,
  Deferred,
  Duration,
  Effect,
  Either,
  Exit,
  type Fiber,
  FiberRef,
  Runtime,
  type Scope,
  type Tracer
} from "effect"
import { isNonEmptyReadonlyArray, type NonEmptyReadonlyArray } from "effect/Array"
import { ServiceUnavailable } from "../errors/Errors.ts"
import { recordedSpanOf } from "../telemetry/Spans.ts"

/**
 * Runs an effect on first use, and caches its result for the life of the process, even a failure. Uninterruptible: the
 * effect and any wait for it run to the end even if the first caller is interrupted.
 *
 * `Effect.cached` would cache that interruption as the result, and interrupt later callers.
 */
export const cachedForever = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<Effect.Effect<A, E>> =>
  Effect.map(Effect.cachedWithTTL(effect, Duration.infinity), Effect.uninterruptible)

/** After pending I/O; `Effect.yieldNow` only lets fibers run that are already runnable. */
export const turnOfEventLoop: Effect.Effect<void> = Effect.async((resume) => {
  setImmediate(() => resume(Effect.void))
})

const isValue = <A, E, R>(effect: Effect.Effect<A, E, R>): effect is Effect.Effect<A, E, R> & Exit.Success<A, E> =>
  Exit.isExit(effect) && Exit.isSuccess(effect)

/**
 * Like `Effect.flatMap`, but if the effect is already a value, calls `next` at once, without a step of the runtime. For
 * code that runs thousands of times a second and mostly waits for nothing: there a step costs more than the function.
 *
 * Only for use inside an effect that is being run, as in `Effect.suspend`: an exception of `next` is a defect there.
 */
export const flatMapSync = <A, E, R, B, E2, R2>(
  effect: Effect.Effect<A, E, R>,
  next: (value: A) => Effect.Effect<B, E2, R2>
): Effect.Effect<B, E | E2, R | R2> => (isValue(effect) ? next(effect.value) : Effect.flatMap(effect, next))

/** The time by a fiber's own clock, in Unix milliseconds, without a step of the runtime. */
export const millisNow = ({ currentDefaultServices }: Fiber.RuntimeFiber<unknown, unknown>): number =>
  Context.get(currentDefaultServices, Clock.Clock).unsafeCurrentTimeMillis()

/** Milliseconds of the fiber's monotonic clock: durations must not depend on adjustments of the wall clock. */
export const monotonicMillis: Effect.Effect<number> = Effect.map(
  Clock.currentTimeNanos,
  (nanos) => Number(nanos / 1000n) / 1000
)

/** A new entry replaces the oldest: for values that can be looked up again. */
export class BoundedMap<A> {
  private readonly entries = new Map<string, A>()
  private readonly capacity: number

  constructor(capacity = 10_000) {
    this.capacity = capacity
  }

  get(key: string): A | undefined {
    return this.entries.get(key)
  }

  set(key: string, value: A): void {
    if (!this.entries.has(key) && this.entries.size >= this.capacity) {
      const [oldest] = this.entries.keys()
      if (oldest !== undefined) {
        this.entries.delete(oldest)
      }
    }
    this.entries.set(key, value)
  }

  /** The value of a key, which is made if it is missing. */
  getOrSet(key: string, make: () => A): A {
    const known = this.entries.get(key)
    if (known !== undefined) return known
    const made = make()
    this.set(key, made)
    return made
  }

  delete(key: string): void {
    this.entries.delete(key)
  }
}

/** The maximum time of a request that has to wait, from entering the queue to the end of its turn, in milliseconds. */
export const permitTimeoutMillis = 10_000

export const maxPermitWaiters = 1000

/** The error of a request that timed out, or found the queue full. */
export const permitRefused = (): ServiceUnavailable =>
  new ServiceUnavailable({ cause: "The request waited too long for its turn, or too many were waiting" })

interface Place {
  state: "waiting" | "running" | "left"
  timer?: NodeJS.Timeout
  readonly resume: (result: Effect.Effect<void, ServiceUnavailable>) => void
}

/**
 * A semaphore with a bounded first-in, first-out queue. While the running effects hang, as with a database that does
 * not answer, the queue neither grows without bound nor holds a request for long: one that finds it full, or has been
 * in it too long, is refused. A request that need not wait is bounded by its effect alone.
 */
export class BoundedSemaphore {
  #running = 0
  readonly #waiting = new Set<Place>()
  readonly #atOnce: number
  readonly #timeoutMillis: number

  constructor(atOnce: number, timeoutMillis = permitTimeoutMillis) {
    this.#atOnce = atOnce
    this.#timeoutMillis = timeoutMillis
  }

  readonly turn = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | ServiceUnavailable, R> =>
    Effect.suspend(() => {
      let place: Place | undefined
      const enteredAt = performance.now()
      const begun = Effect.async<void, ServiceUnavailable>((resume) => {
        place = { state: "waiting", resume }
        this.#enter(place)
      })
      // Disconnected: an effect that hangs may also be slow to interrupt
      const ownTurn = Effect.suspend(() =>
        place?.timer === undefined
          ? effect
          : Effect.timeoutFail(Effect.disconnect(effect), {
              duration: Math.max(1, enteredAt + this.#timeoutMillis - performance.now()),
              onTimeout: permitRefused
            })
      )
      return Effect.ensuring(
        Effect.zipRight(begun, ownTurn),
        // Also after an interruption, wherever it occurs
        Effect.sync(() => {
          if (place !== undefined) this.#leave(place)
        })
      )
    })

  #enter(place: Place): void {
    if (this.#running < this.#atOnce) {
      this.#begin(place)
    } else if (this.#waiting.size >= maxPermitWaiters) {
      this.#refuse(place)
    } else {
      this.#waiting.add(place)
      place.timer = setTimeout(() => this.#refuse(place), this.#timeoutMillis)
    }
  }

  #begin(place: Place): void {
    place.state = "running"
    this.#running += 1
    place.resume(Effect.void)
  }

  #refuse(place: Place): void {
    this.#leave(place)
    place.resume(permitRefused())
  }

  #leave(place: Place): void {
    const wasRunning = place.state === "running"
    place.state = "left"
    clearTimeout(place.timer)
    this.#waiting.delete(place)
    if (!wasRunning) return
    this.#running -= 1
    const [next] = this.#waiting
    if (next === undefined) return
    clearTimeout(next.timer)
    this.#waiting.delete(next)
    this.#begin(next)
  }
}

interface FairSemaphoreOptions<Own, All> {
  readonly concurrency: number
  /** The maximum number of one owner's permits, so that nobody can starve all the others. */
  readonly share: number
  /** How long a caller waits, for its own share and then for the rest. */
  readonly timeout: Duration.DurationInput
  readonly onShareTaken: () => Own
  readonly onAllTaken: () => All
}

/** Holds a permit for an owner (a client's address, an organization) until the scope closes. */
type TakePermit<E> = (owner: string) => Effect.Effect<void, E, Scope.Scope>

/** A separate fiber waits for it, so that a permit that comes too late is released. */
const hold = (semaphore: Effect.Semaphore) =>
  Effect.gen(function* () {
    const held = yield* Deferred.make<void>()
    yield* Effect.forkScoped(semaphore.withPermits(1)(Effect.zipRight(Deferred.succeed(held, undefined), Effect.never)))
    yield* Deferred.await(held)
  })

export const makeFairSemaphore = <Own, All>({
  concurrency,
  onAllTaken,
  onShareTaken,
  share,
  timeout
}: FairSemaphoreOptions<Own, All>): Effect.Effect<TakePermit<Own | All>> =>
  Effect.map(Effect.makeSemaphore(concurrency), (all) => {
    const shares = new Map<string, { readonly semaphore: Effect.Semaphore; users: number }>()

    /** The owner's share, which exists while it is in use. */
    const shareOf = (owner: string) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          const known = shares.get(owner) ?? { semaphore: Effect.unsafeMakeSemaphore(share), users: 0 }
          known.users += 1
          shares.set(owner, known)
          return known
        }),
        (known) =>
          Effect.sync(() => {
            known.users -= 1
            if (known.users === 0) shares.delete(owner)
          })
      )

    return (owner) =>
      Effect.gen(function* () {
        const own = yield* shareOf(owner)
        yield* Effect.timeoutFail(hold(own.semaphore), { duration: timeout, onTimeout: onShareTaken })
        yield* Effect.timeoutFail(hold(all), { duration: timeout, onTimeout: onAllTaken })
      })
  })

/** The event loop utilization at which batches begin to be spaced, and at which they are spaced fully. */
const busy = { from: 0.55, full: 0.85 }

const maxMillis = 15

/** How often the event loop's utilization is measured, in milliseconds. */
const lookMillis = 500

/** The interval between batches at this event loop utilization, in milliseconds: 0 up to `busy.from`. */
export const batchIntervalFor = (share: number): number =>
  maxMillis * Math.min(1, Math.max(0, (share - busy.from) / (busy.full - busy.from)))

let looked = performance.eventLoopUtilization()
let lookedAt = performance.now()
let spacing = 0

/**
 * The interval between the starts of batches now, in milliseconds. A statement costs this process and the database the
 * same, whatever its size: a mostly idle process sends at once, a busy one waits a little and sends more per statement.
 */
export const batchIntervalMillis = (): number => {
  const now = performance.now()
  if (now - lookedAt >= lookMillis) {
    const { utilization } = performance.eventLoopUtilization(looked)
    looked = performance.eventLoopUtilization()
    lookedAt = now
    spacing = batchIntervalFor(utilization)
  }
  return spacing
}

export interface BatcherOptions<Input, Output, E> {
  readonly run: (batch: NonEmptyReadonlyArray<Input>) => Effect.Effect<ReadonlyArray<Output>, E>
  /** The key that must not occur twice in one batch: a second input with it waits for the next. */
  readonly keyOf: (input: Input) => string
  readonly concurrency: number
  readonly maxBatch: number
  /** The minimum time between the starts of two batches, in milliseconds; called for each batch. */
  readonly interval: () => number
  /** How long an input waits for a batch, in milliseconds, and its error after that. */
  readonly timeout: { readonly millis: number; readonly error: () => E }
  /** How many inputs may wait; a further one fails with that error at once. Default: any number. */
  readonly maxWaiting?: number
  /** Not if the others would fail as well. */
  readonly isOfOne: (error: E) => boolean
}

interface Waiting<Input, Output, E> {
  readonly input: Input
  /** The start of the wait, by `performance.now()`. */
  readonly since: number
  /** The caller's span, if it is recorded. */
  readonly span: Tracer.AnySpan | null
  readonly resume: (exit: Exit.Exit<Output, E>) => void
}

/**
 * Runs single inputs in batches. While fewer than `concurrency` batches run and they are not spaced, nothing waits: a
 * batch of one begins at once. Otherwise inputs wait for the next batch, or fail after `timeout`. If a batch fails with
 * an error that one input may have caused, each input is retried alone, so that none fails because of another.
 *
 * Tracing changes no batch. The spans of a batch's work are under the first caller's span that is recorded, and link to
 * those of the others.
 *
 * Effect's own batching (`RequestResolver`) collects the requests of one fiber, and its data loader uses a time window,
 * in which a single request would wait.
 */
export class Batcher<Input, Output, E> {
  readonly #options: BatcherOptions<Input, Output, E>
  readonly #runCallback: <A, E2>(
    effect: Effect.Effect<A, E2>,
    options: { onExit: (exit: Exit.Exit<A, E2>) => void }
  ) => void
  #waiting: Array<Waiting<Input, Output, E>> = []
  #running = 0
  #isTimed = false
  /** When the last batch was begun, by `performance.now()`. */
  #begunAt = Number.NEGATIVE_INFINITY
  #isSpaced = false

  private constructor(options: BatcherOptions<Input, Output, E>, runtime: Runtime.Runtime<never>) {
    this.#options = options
    this.#runCallback = Runtime.runCallback(runtime)
  }

  /** Creates an instance. Batches run with the services and fiber references of the fiber that calls this. */
  static readonly make = <Input, Output, E>(
    options: BatcherOptions<Input, Output, E>
  ): Effect.Effect<Batcher<Input, Output, E>> =>
    Effect.map(Effect.runtime<never>(), (runtime) => new Batcher(options, runtime))

  /** Does one input's work. An interrupted caller no longer waits; the work itself is still done. */
  readonly submit = (input: Input): Effect.Effect<Output, E> =>
    Effect.withFiberRuntime((fiber) =>
      Effect.async<Output, E>((resume) => {
        const { maxWaiting = Number.POSITIVE_INFINITY, timeout } = this.#options
        if (this.#waiting.length >= maxWaiting) {
          resume(Exit.fail(timeout.error()))
          return
        }
        const span = recordedSpanOf(fiber)
        this.#waiting.push({ input, since: performance.now(), span, resume: (exit) => resume(exit) })
        if (this.#running < this.#options.concurrency) this.#beginSpaced()
        else this.#limitWait()
      })
    )

  /** One timer for all waiting inputs, set for the oldest. */
  #limitWait(): void {
    const [first] = this.#waiting
    if (first === undefined || this.#isTimed) return
    this.#isTimed = true
    const { error, millis } = this.#options.timeout
    setTimeout(
      () => {
        this.#isTimed = false
        const now = performance.now()
        const late = this.#waiting.filter(({ since }) => now - since >= millis)
        this.#waiting = this.#waiting.filter(({ since }) => now - since < millis)
        for (const { resume } of late) resume(Exit.fail(error()))
        this.#limitWait()
      },
      Math.max(1, Math.ceil(first.since + millis - performance.now()))
    )
  }

  /** Begins a batch once `interval` has passed since the last one began; a full batch at once. */
  #beginSpaced(): void {
    if (this.#waiting.length === 0) return
    const { maxBatch, interval } = this.#options
    const wait = this.#waiting.length >= maxBatch ? 0 : this.#begunAt + interval() - performance.now()
    if (wait <= 0) this.#begin()
    else if (!this.#isSpaced) this.#beginIn(wait)
  }

  #beginIn(millis: number): void {
    this.#isSpaced = true
    setTimeout(() => {
      this.#isSpaced = false
      if (this.#running < this.#options.concurrency) this.#begin()
      else this.#limitWait()
    }, Math.ceil(millis))
  }

  #begin(): void {
    const batch = this.#takeBatch()
    if (!isNonEmptyReadonlyArray(batch)) return
    this.#running += 1
    this.#begunAt = performance.now()
    this.#runCallback(this.#work(batch), {
      onExit: () => {
        this.#running -= 1
        this.#beginSpaced()
      }
    })
  }

  #takeBatch(): ReadonlyArray<Waiting<Input, Output, E>> {
    const { keyOf, maxBatch } = this.#options
    const keys = new Set<string>()
    const batch: Array<Waiting<Input, Output, E>> = []
    const later: Array<Waiting<Input, Output, E>> = []
    for (const waiting of this.#waiting) {
      const key = keyOf(waiting.input)
      const fits = batch.length < maxBatch && !keys.has(key)
      if (fits) keys.add(key)
      ;(fits ? batch : later).push(waiting)
    }
    this.#waiting = later
    return batch
  }

  #work(batch: NonEmptyReadonlyArray<Waiting<Input, Output, E>>): Effect.Effect<void> {
    return Effect.flatMap(Effect.exit(this.#run(batch)), (exit) => {
      if (Exit.isSuccess(exit)) {
        return Effect.sync(() => {
          const complete = exit.value.length === batch.length
          for (const [index, output] of exit.value.entries()) {
            if (complete) batch[index]?.resume(Exit.succeed(output))
          }
          if (!complete) for (const { resume } of batch) resume(Exit.die("A batch answers each of its inputs"))
        })
      }
      return batch.length === 1 || !this.#mayBeOfOne(exit.cause)
        ? Effect.sync(() => {
            for (const { resume } of batch) resume(Exit.failCause(exit.cause))
          })
        : Effect.forEach(batch, (one) => this.#work([one]), { discard: true })
    })
  }

  #mayBeOfOne(cause: Cause.Cause<E>): boolean {
    return Cause.isInterruptedOnly(cause)
      ? false
      : Either.match(Cause.failureOrCause(cause), { onLeft: this.#options.isOfOne, onRight: () => true })
  }

  #run(batch: NonEmptyReadonlyArray<Waiting<Input, Output, E>>): Effect.Effect<ReadonlyArray<Output>, E> {
    const [first, ...others] = batch
    const running = this.#options.run([first.input, ...others.map(({ input }) => input)])
    const [parent, ...linked] = batch.flatMap(({ span }) => span ?? [])
    if (parent === undefined) return Effect.withTracerEnabled(running, false)
    const links = linked.map((span) => ({ _tag: "SpanLink" as const, span, attributes: {} }))
    return running.pipe(
      Effect.locally(FiberRef.currentTracerSpanLinks, Chunk.fromIterable(links)),
      Effect.withParentSpan(parent),
      Effect.withTracerEnabled(true)
    )
  }
}
