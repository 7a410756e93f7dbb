import type { Claim, QueuePlace } from "./Claim.ts"

/** How many of the queue's rows one claim reads, if most of them may be other workers'. */
const readAtMost = 4096

/**
 * A walk through the queue in steps of as many rows: each claim goes on where the one before ended, up to the queue's end.
 * So what a claim costs does not depend on how much there is that it may not take, and it comes to everything.
 */
export class Walk {
  #at: QueuePlace | null = null
  #isStuck = false

  /** Whether the next claim goes on, in place of beginning. */
  get isUnderWay(): boolean {
    return this.#at !== null
  }

  /** What the next claim reads; `start`: where a walk begins. */
  next(start: QueuePlace): { readonly from: QueuePlace; readonly readAtMost: number | null } {
    return { from: this.#at ?? start, readAtMost: this.#isStuck ? null : readAtMost }
  }

  /** Notes where the claim ended that began there. */
  note(from: QueuePlace, { more, reached }: Pick<Claim, "more" | "reached">): void {
    // So many rows of the same time that it did not get beyond them: the next one reads them all
    this.#isStuck = reached !== null && reached === from
    this.#at = reached ?? (more ? this.#at : null)
  }
}
