import { Data } from "effect"

/**
 * The reason why the emulator could not start or go on.
 *
 * - `CannotListen`: the address is in use, or is not this machine's.
 * - `JournalUnreadable`: the journal file is not the emulator's, or a line before its last one is damaged.
 * - `JournalUnwritable`: the journal file cannot be written; the change that needed it did not happen.
 */
export class EmulatorError extends Data.TaggedError("EmulatorError")<{
  readonly reason: "CannotListen" | "JournalUnreadable" | "JournalUnwritable"
  readonly message: string
  readonly cause?: unknown
}> {}
