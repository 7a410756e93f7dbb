import { Data } from "effect"

/** A move can't begin or go on; the message is a sentence or more for the operator. */
export class MoveRefused extends Data.TaggedError("MoveRefused")<{
  readonly message: string
  readonly cause?: unknown
}> {}
