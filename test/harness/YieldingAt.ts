import { Scheduler } from "effect"

/** Has fibers stop once, before one of their operations, as they do after some thousands: they can be interrupted there. */
export class YieldingAt extends Scheduler.MixedScheduler {
  #left: number

  /** @param operation before which one, from 1 */
  constructor(operation: number) {
    super(Number.MAX_SAFE_INTEGER)
    this.#left = operation
  }

  override shouldYield(): number | false {
    this.#left -= 1
    return this.#left === 0 ? 0 : false
  }
}
