import { Scheduler } from "effect"

const mixed = new Scheduler.MixedScheduler(2048)

/**
 * Effect's default scheduler, but with one queue for all fibers that have it: those that are resumed while one event is
 * handled go on together. Effect itself has a queue and a microtask for each fiber, in a table that keeps the queues of ended fibers until
 * the whole heap is collected.
 */
export const oneQueue: Scheduler.Scheduler = Scheduler.make(
  (task, priority) => mixed.scheduleTask(task, priority),
  mixed.shouldYield
)
