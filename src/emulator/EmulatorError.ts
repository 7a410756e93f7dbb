import { Data } from "effect"

/**
 * Why the emulator could not start or continue.
 *
 * - `CannotListen`: the address is in use, or does not belong to this machine.
 * - `JournalUnreadable`: the file is not an emulator journal, or a line before its last one is damaged.
 * - `JournalUnwritable`: the journal file cannot be written; the change in question did not happen.
 */
export class EmulatorError extends Data.TaggedError("EmulatorError")<{
  readonly reason: "CannotListen" | "JournalUnreadable" | "JournalUnwritable"
  readonly message: string
  readonly cause?: unknown
}> {}
