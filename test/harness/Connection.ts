import { Effect, Redacted, type Scope } from "effect"
import { Client } from "pg"
import { eventually } from "./Eventually.ts"

/** Opens a connection outside the service's pools. It closes with the scope, or when the server does. */
export const connectionTo = (url: string | Redacted.Redacted): Effect.Effect<Client, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new Client({ connectionString: typeof url === "string" ? url : Redacted.value(url) })
      // A broken connection fails the statement under way; without a listener its event would end the worker
      client.on("error", () => {})
      await client.connect()
      return client
    }),
    // The server may be gone by then
    (client) => Effect.promise(() => client.end().catch(() => {}))
  )

/** Waits until a server answers connections; writes its log if it never does. */
export const answering = (what: string, url: string, log: () => string) =>
  eventually(
    `${what} answers`,
    Effect.option(
      Effect.tryPromise(async () => {
        const client = new Client({ connectionString: url })
        client.on("error", () => {})
        await client.connect()
        await client.end()
      })
    )
  ).pipe(Effect.tapErrorCause(() => Effect.sync(() => process.stderr.write(log()))))

export const ask = <Row extends object = Record<string, unknown>>(
  url: string | Redacted.Redacted,
  text: string,
  values: ReadonlyArray<unknown> = []
): Effect.Effect<ReadonlyArray<Row>> =>
  Effect.scoped(
    Effect.flatMap(connectionTo(url), (client) =>
      Effect.promise(async () => (await client.query<Row>(text, [...values])).rows)
    )
  )

export const tell = (url: string | Redacted.Redacted, ...statements: ReadonlyArray<string>): Effect.Effect<void> =>
  Effect.scoped(
    Effect.flatMap(connectionTo(url), (client) =>
      Effect.forEach(statements, (statement) => Effect.promise(() => client.query(statement)), { discard: true })
    )
  )
