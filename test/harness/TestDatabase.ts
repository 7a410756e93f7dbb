import { randomUUID } from "node:crypto"
import { Data, Effect, Redacted, type Scope } from "effect"
import pg, { Client, escapeIdentifier } from "pg"
import { inject, vi } from "vitest"
import { copyCluster, emptyTemplate } from "./Cluster.ts"

export class TestDatabaseError extends Data.TaggedError("TestDatabaseError")<{
  readonly statement: string
  readonly cause: unknown
}> {}

export interface TestDatabase {
  /** Its name in the run's PostgreSQL; can serve as `template` of others while nobody is connected to it. */
  readonly name: string
  readonly url: Redacted.Redacted<string>
}

const administer = (statement: string): Effect.Effect<void, TestDatabaseError> =>
  Effect.tryPromise({
    try: async () => {
      const client = new Client({ connectionString: inject("databaseAdminUrl"), connectionTimeoutMillis: 10_000 })
      // A broken connection fails the statement under way; without a listener its event would end the worker.
      client.on("error", () => {})
      await client.connect()
      try {
        await client.query(statement)
      } finally {
        await client.end()
      }
    },
    catch: (cause) => new TestDatabaseError({ statement, cause })
  })

const urlOf = (name: string): Redacted.Redacted<string> => {
  const url = new URL(inject("databaseAdminUrl"))
  url.pathname = `/${name}`
  return Redacted.make(url.href)
}

/**
 * Makes a database with a name of its own in the run's PostgreSQL, and drops it, with whatever is still connected to
 * it, when the scope closes. Safe in test files that run in parallel.
 *
 * PostgreSQL itself waits for a template that somebody is still connected to, up to 5 s, and then refuses.
 *
 * @param options.template name of a database to copy, such as one that was migrated once; default an empty one
 */
export const createTestDatabase = (options?: {
  readonly template?: string
}): Effect.Effect<TestDatabase, TestDatabaseError, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.suspend(() => {
      const name = `test_${randomUUID().replaceAll("-", "")}`
      // Copying files is several times faster than logging every page, and the run's server does not force to disk.
      const template = options?.template === undefined ? emptyTemplate : escapeIdentifier(options.template)
      return administer(`CREATE DATABASE ${escapeIdentifier(name)} TEMPLATE ${template} STRATEGY FILE_COPY`).pipe(
        Effect.as({ name, url: urlOf(name) })
      )
    }),
    ({ name }) => Effect.orDie(administer(`DROP DATABASE IF EXISTS ${escapeIdentifier(name)} WITH (FORCE)`))
  )

/** A test's own database with the schema up to date: a copy is made sooner than an empty one is migrated. */
export const createMigratedDatabase: Effect.Effect<TestDatabase, TestDatabaseError, Scope.Scope> = Effect.suspend(() =>
  createTestDatabase({ template: inject("migratedDatabase") })
)

/**
 * Puts a cluster with the schema up to date into a directory, where a start of the embedded PostgreSQL takes it for
 * that of an earlier run: the copy is there sooner than `initdb` makes one.
 */
export const placeCluster = (directory: string): Effect.Effect<void> =>
  Effect.suspend(() => Effect.orDie(copyCluster(inject("clusterDirectory"), directory)))

/** All statements that clients of this process send, recorded until the scope ends. */
export const recordedQueries = Effect.acquireRelease(
  Effect.sync(() => vi.spyOn(pg.Client.prototype, "query")),
  (spy) => Effect.sync(() => spy.mockRestore())
)
