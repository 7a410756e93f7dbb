import { Cause, Data, Predicate } from "effect"
import { errorCode } from "../../platform/errors/ErrorCode.ts"
import { isApiError } from "../../platform/errors/Errors.ts"

export class CommandFailed extends Data.TaggedError("CommandFailed")<{
  readonly message: string
  readonly cause?: unknown
}> {}

/** The command line itself is wrong. Exit code 2. */
export class WrongUsage extends Data.TaggedError("WrongUsage")<{
  readonly message: string
  /** The command whose help says more, if it is known. */
  readonly command?: string
}> {}

export const exitCodes = { done: 0, failed: 1, usage: 2, interrupted: 130 } as const

/** How many causes are printed with the message: enough for a lost connection, without a wall of text. */
const maxCauses = 3

const wordsOf = (value: unknown): string => {
  if (value instanceof AggregateError && value.message === "") {
    return wordsOf(value.errors[0])
  }
  if (value instanceof Error) {
    return value.message === "" ? (errorCode(value) ?? "") : value.message
  }
  return typeof value === "string" ? value : Predicate.isRecord(value) ? JSON.stringify(value) : ""
}

/** Whether an error is our own refusal, whose message is complete: its cause is the database's version of the same. */
const isRefusal = (error: { readonly cause: unknown }): boolean =>
  isApiError(error) && error.status < 500 && error.cause instanceof Error

/** The failure and its causes, each once, one per line. Causes never hold secrets. */
export const explain = (error: unknown): string => {
  const lines = [wordsOf(error)]
  let cause: unknown = Predicate.hasProperty(error, "cause") && !isRefusal(error) ? error.cause : undefined
  for (let depth = 0; depth < maxCauses && cause !== undefined; depth++) {
    const words = wordsOf(cause)
    if (words !== "" && !lines.some((line) => line.includes(words))) {
      lines.push(words)
    }
    cause = Predicate.hasProperty(cause, "cause") ? cause.cause : undefined
  }
  return lines.filter((line) => line !== "").join("\n  because: ")
}

/** The report of a bug, in full, since only its trace helps. */
export const explainDefect = (cause: Cause.Cause<unknown>): string =>
  `This is a bug of connected-payments.\n${Cause.pretty(cause, { renderErrorCause: true })}`
