import { Data, Effect } from "effect"

/**
 * The reason why the embedded PostgreSQL could not be used, for programs; the message is for people.
 *
 * - `unsupported_platform`: there are no binaries for this operating system or processor, or they do not run on it
 * - `package_missing`: the optional package with the binaries is not installed
 * - `in_use`: another live process holds the directory
 * - `port_in_use`: the requested port is taken
 * - `permission_denied`: no account may run the server, or its account may not reach its files
 * - `data_missing`: the directory points to data, or needs a password, that no longer exists
 * - `version_mismatch`: the data was written by another major version of PostgreSQL
 * - `initialization_failed`, `start_failed`: PostgreSQL itself failed; the message contains its output
 * - `io_failed`: a file or directory could not be read or written
 */
export type EmbeddedPostgresReason =
  | "unsupported_platform"
  | "package_missing"
  | "in_use"
  | "port_in_use"
  | "permission_denied"
  | "data_missing"
  | "version_mismatch"
  | "initialization_failed"
  | "start_failed"
  | "io_failed"

/**
 * The embedded PostgreSQL could not be prepared, started or recovered. `message` is written for the person who started
 * the service: it names the directory, port or process and, if there is one, the remedy. It never contains the
 * password.
 */
export class EmbeddedPostgresError extends Data.TaggedError("EmbeddedPostgresError")<{
  readonly reason: EmbeddedPostgresReason
  readonly message: string
  readonly cause?: unknown
}> {}

/** The text of an unknown failure, for use in a message. */
export const wordsOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/**
 * Runs a file operation; its failure becomes an {@link EmbeddedPostgresError} that says what was being done.
 *
 * @param purpose completes "Cannot …", for instance `write /data/password`
 */
export const fileOperation = <A>(
  purpose: string,
  operation: () => Promise<A>
): Effect.Effect<A, EmbeddedPostgresError> =>
  Effect.tryPromise({
    try: operation,
    catch: (cause) =>
      new EmbeddedPostgresError({
        reason: "io_failed",
        message: `Embedded PostgreSQL: cannot ${purpose}: ${wordsOf(cause)}`,
        cause
      })
  })
