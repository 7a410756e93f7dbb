import { SqlError } from "@effect/sql"
import type { PgClient } from "@effect/sql-pg"
import { Effect, Redacted } from "effect"
import pg from "pg"

/** How often to check whether the connection still works, in milliseconds: a peer that vanished does not close it. */
const askEvery = 10_000

/** Timeout of connecting, and of each query, in milliseconds. */
const timeoutMillis = 5000

/** The callbacks of a listener. They must return at once and not throw. */
export interface ListenerCallbacks {
  /** Every later notification is received; those sent before are lost. */
  readonly onListening: () => void
  readonly onNotification: (payload: string) => void
}

/** Connection settings for the address that a `PgClient` connects to. */
export const settingsOf = ({
  database,
  host,
  password,
  port,
  ssl,
  url,
  username
}: PgClient.PgClientConfig): pg.ClientConfig => ({
  ...(url === undefined ? {} : { connectionString: Redacted.value(url) }),
  ...(host === undefined ? {} : { host }),
  ...(port === undefined ? {} : { port }),
  ...(database === undefined ? {} : { database }),
  ...(username === undefined ? {} : { user: username }),
  ...(password === undefined ? {} : { password: Redacted.value(password) }),
  ...(ssl === undefined ? {} : { ssl })
})

/** Only the address, from connection options that contain more. */
export const addressOf = ({ connectionString }: pg.ClientConfig): pg.ClientConfig =>
  connectionString === undefined ? {} : { connectionString }

/**
 * Listens to a channel on a separate connection and fails when that is lost, whereas `PgClient.listen` neither fails
 * nor reconnects. `Client` is the class that finds the server. A silently dead connection is detected within 15
 * seconds.
 */
export const listenOn = (
  address: pg.ClientConfig,
  Client: typeof pg.Client,
  channel: string,
  { onListening, onNotification }: ListenerCallbacks
): Effect.Effect<never, SqlError.SqlError> =>
  Effect.async<never, SqlError.SqlError>((resume) => {
    const client = new Client({
      ...address,
      application_name: "connected-payments listener",
      connectionTimeoutMillis: timeoutMillis,
      query_timeout: timeoutMillis,
      keepAlive: true
    })
    const lost = (cause: unknown) => {
      stop()
      resume(Effect.fail(new SqlError.SqlError({ cause, message: "The listening connection is lost" })))
    }
    // Also the check: repeating LISTEN changes nothing on a live connection
    const listen = () => client.query(`LISTEN ${pg.escapeIdentifier(channel)}`)
    const asking = setInterval(() => void listen().catch(lost), askEvery)
    const ended = () => lost(new Error("it was closed"))
    const stop = () => {
      clearInterval(asking)
      // Remove only this listener: others count their connections by the same event
      client.off("end", ended)
      // Do not wait for the close: a dead server does not confirm it
      client.end().catch(() => {})
    }
    client.on("error", lost)
    client.on("end", ended)
    client.on("notification", ({ payload }) => onNotification(payload ?? ""))
    client.connect().then(listen).then(onListening, lost)
    return Effect.sync(stop)
  })
