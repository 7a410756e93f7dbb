import type { SqlError } from "@effect/sql"
import { Predicate } from "effect"

/** What PostgreSQL says where it refuses a statement, and how much of that anybody may see. */

/**
 * The SQLSTATE of the PostgreSQL error behind a `SqlError`, e.g. `23505`. None where the server said nothing, as when a
 * socket broke: a server's errors have a severity, while codes of the operating system may look the same (`EPIPE`).
 */
export const sqlState = (error: SqlError.SqlError): string | undefined =>
  Predicate.hasProperty(error.cause, "severity") &&
  Predicate.hasProperty(error.cause, "code") &&
  typeof error.cause.code === "string"
    ? error.cause.code
    : undefined

/** The fields of an error that show rows, parameters or statements that were sent. */
const valuesIn = ["detail", "where", "hint", "internalQuery", "internalPosition"] as const

/**
 * SQLSTATEs whose messages repeat the value that was refused: data exceptions (`invalid input syntax for type uuid:
 * "…"`). All others name tables, columns and constraints alone.
 */
const saysTheValue = /^22/

/**
 * Takes the values of rows and parameters out of an error of the server's, before anybody has it: code, severity, schema,
 * table, column and constraint stay, and the message where it holds none.
 */
export const removeValues = (error: Error): void => {
  for (const field of valuesIn) Reflect.deleteProperty(error, field)
  if (!Predicate.hasProperty(error, "code") || !saysTheValue.test(String(error.code))) return
  const { message } = error
  error.message = `A value was refused (SQLSTATE ${String(error.code)})`
  // It begins with the message that the error was made with
  if (error.stack !== undefined) error.stack = error.stack.replace(message, () => error.message)
}
