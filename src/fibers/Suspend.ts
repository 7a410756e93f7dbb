import { Effect, Effectable, Exit, FiberId, Scheduler } from "effect"

type Register<A, E> = (resume: (effect: Effect.Effect<A, E>) => void) => void

/** Effect's own operation for waiting, in the form in which its runtime reads it. */
class Suspension<A, E> extends Effectable.Class<A, E> {
  readonly _op = "Async"
  readonly effect_instruction_i0: Register<A, E>
  readonly effect_instruction_i1 = FiberId.none

  constructor(register: Register<A, E>) {
    super()
    this.effect_instruction_i0 = register
  }

  /** Required of every class of effects; the runtime goes by `_op` and never calls it. */
  override commit(): Effect.Effect<A, E> {
    return Effect.async((resume) => this.effect_instruction_i0(resume))
  }
}

/** Whether this version of Effect reads it so; another one may have it differently. */
const isRead = Exit.isSuccess(Effect.runSyncExit(new Suspension<void, never>((resume) => resume(Effect.void))))

/**
 * Suspends the fiber until `resume` is called; what `register` throws is a defect. As `Effect.async`, without a way to
 * cancel: whoever interrupts the fiber has to know what else is to be done.
 *
 * For what happens thousands of times a second. `Effect.async` assigns a new function to a property for each wait. V8 puts
 * functions that are assigned so into the old space, where each keeps all that its fiber held, until the whole heap is
 * collected: two fifths of what an attempt allocates grew old in that way, although it was garbage.
 */
export const suspend: <A, E = never>(register: Register<A, E>) => Effect.Effect<A, E> = isRead
  ? (register) => new Suspension(register)
  : (register) => Effect.async((resume) => register(resume))

const mixed = new Scheduler.MixedScheduler(2048)

/**
 * Effect's default scheduler, but with one queue for all fibers that have it: those that are resumed while one event is
 * handled go on together. Effect itself has a queue and a microtask for each fiber, in a table that keeps the queues of ended fibers until
 * the whole heap is collected.
 */
export const sharedScheduler: Scheduler.Scheduler = Scheduler.make(
  (task, priority) => mixed.scheduleTask(task, priority),
  mixed.shouldYield
)
