import { Effect, Effectable, Exit, FiberId, Scheduler } from "effect"

type Register<A, E> = (resume: (effect: Effect.Effect<A, E>) => void) => void

/** Effect's internal operation for waiting, in the form that its runtime expects. */
class Suspension<A, E> extends Effectable.Class<A, E> {
  readonly _op = "Async"
  readonly effect_instruction_i0: Register<A, E>
  readonly effect_instruction_i1 = FiberId.none

  constructor(register: Register<A, E>) {
    super()
    this.effect_instruction_i0 = register
  }

  /** Required of every class of effects; the runtime uses `_op` and never calls it. */
  override commit(): Effect.Effect<A, E> {
    return Effect.async((resume) => this.effect_instruction_i0(resume))
  }
}

/** Whether this version of Effect accepts that form; another version may use a different one. */
const isRead = Exit.isSuccess(Effect.runSyncExit(new Suspension<void, never>((resume) => resume(Effect.void))))

/**
 * Suspends the fiber until `resume` is called; an exception of `register` is a defect. Like `Effect.async`, without a
 * canceler: code that interrupts the fiber must do the cleanup.
 *
 * For waits that happen thousands of times a second. `Effect.async` assigns a new function to a property for each wait.
 * V8 puts such functions into the old space, where each keeps everything its fiber held, until a full garbage
 * collection: two fifths of an attempt's allocations were promoted that way, although they were garbage.
 */
export const suspend: <A, E = never>(register: Register<A, E>) => Effect.Effect<A, E> = isRead
  ? (register) => new Suspension(register)
  : (register) => Effect.async((resume) => register(resume))

const mixed = new Scheduler.MixedScheduler(2048)

/**
 * Effect's default scheduler, but with one queue for all fibers that use it: fibers resumed while one event is handled
 * continue together. Effect itself has a queue and a microtask for each fiber, in a table that keeps the queues of
 * ended fibers until a full garbage collection.
 */
export const sharedScheduler: Scheduler.Scheduler = Scheduler.make(
  (task, priority) => mixed.scheduleTask(task, priority),
  mixed.shouldYield
)
