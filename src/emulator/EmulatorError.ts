import { Data } from "effect"

/**
 * Why the emulator could not start or go on.
 *
 * - `CannotListen`: the address is taken or not this machine's.
 * - `JournalUnreadable`: the journal file is not the emulator's, or is damaged elsewhere than in its last line.
 * - `JournalUnwritable`: the journal file cannot be written; the change that needed it did not happen.
 */
export class EmulatorError extends Data.TaggedError("EmulatorError")<{
  readonly reason: "CannotListen" | "JournalUnreadable" | "JournalUnwritable"
  readonly message: string
  readonly cause?: unknown
}> {}
