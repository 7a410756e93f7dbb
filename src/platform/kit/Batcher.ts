import { performance } from "node:perf_hooks"
import { Cause, Chunk, Effect, Either, Exit, FiberRef, Runtime, type Tracer } from "effect"
import { isNonEmptyReadonlyArray, type NonEmptyReadonlyArray } from "effect/Array"
import { recordedSpanOf } from "../telemetry/Spans.ts"

/** The event loop utilization at which batches begin to be spaced, and at which they are spaced fully. */
const busy = { from: 0.55, full: 0.85 }

/** The maximum interval between the starts of two batches, in milliseconds. */
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
  /** Does the work of a batch; returns the results in its order. */
  readonly run: (batch: NonEmptyReadonlyArray<Input>) => Effect.Effect<ReadonlyArray<Output>, E>
  /** The key that must not occur twice in one batch: a second input with it waits for the next. */
  readonly keyOf: (input: Input) => string
  /** How many batches are under way at once. */
  readonly concurrency: number
  /** The most inputs of one batch. */
  readonly maxBatch: number
  /** The minimum time between the starts of two batches, in milliseconds; called for each batch. */
  readonly interval: () => number
  /** How long an input waits for a lane, in milliseconds, and what it fails with then. */
  readonly patience: { readonly millis: number; readonly error: () => E }
  /** How many inputs may wait; a further one fails with that error at once. Default: any number. */
  readonly maxWaiting?: number
  /**
   * Whether the inputs of a batch that failed with this error are tried one by one: not if the others would fail as
   * well.
   */
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
 * Runs single inputs in batches. While a lane is free and batches are not spaced, nothing waits: a batch of one begins
 * at once. Otherwise inputs wait for the next batch, or fail after `patience`. If a batch fails with an error that one
 * input may have caused, each input is retried alone, so that none fails because of another.
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
        const { maxWaiting = Number.POSITIVE_INFINITY, patience } = this.#options
        if (this.#waiting.length >= maxWaiting) {
          resume(Exit.fail(patience.error()))
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
    const { error, millis } = this.#options.patience
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
