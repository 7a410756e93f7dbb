import type { SqlError } from "@effect/sql"
import { Predicate } from "effect"

/**
 * The SQLSTATE of the PostgreSQL error behind a `SqlError`, e.g. `23505`. Undefined if the error is not the server's,
 * such as a broken socket. Server errors are recognized by their severity, since operating system codes may look the
 * same (`EPIPE`).
 */
export const sqlState = (error: SqlError.SqlError): string | undefined =>
  Predicate.hasProperty(error.cause, "severity") &&
  Predicate.hasProperty(error.cause, "code") &&
  typeof error.cause.code === "string"
    ? error.cause.code
    : undefined

/** The fields of an error that contain rows, parameters or statements. */
const valuesIn = ["detail", "where", "hint", "internalQuery", "internalPosition"] as const

/**
 * SQLSTATEs whose messages repeat the refused value: data exceptions (`invalid input syntax for type uuid: "…"`). All
 * others name only tables, columns and constraints.
 */
const saysTheValue = /^22/

/**
 * Removes the values of rows and parameters from a server's error, before anything else reads it. Keeps code, severity,
 * schema, table, column and constraint, and the message unless it contains values.
 */
export const removeValues = (error: Error): void => {
  for (const field of valuesIn) Reflect.deleteProperty(error, field)
  if (!Predicate.hasProperty(error, "code") || !saysTheValue.test(String(error.code))) return
  const { message } = error
  error.message = `A value was refused (SQLSTATE ${String(error.code)})`
  // It begins with the error's original message
  if (error.stack !== undefined) error.stack = error.stack.replace(message, () => error.message)
}
