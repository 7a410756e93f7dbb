import { Socket } from "node:net"
import { Data, Effect } from "effect"
import pg from "pg"
import type { DatabaseTarget, Host, SessionKind } from "../settings/DatabaseUrl.ts"

/**
 * Connects to the server that accepts the wanted kind of session: usually the primary, wherever it is. `pg` itself
 * knows one host, and accepts any kind of session there.
 */

/** Timeout for a host to accept a connection, or for the watched one to answer, in milliseconds. */
const timeoutMillis = 2000

/**
 * Calls back after `timeoutMillis`, counted in ticks of this process: a busy process must not take its own delay for a
 * host's.
 */
const afterTimeout = (expire: () => void): (() => void) => {
  const step = 100
  let left = timeoutMillis / step
  const ticking = setInterval(() => {
    left -= 1
    if (left > 0) return
    clearInterval(ticking)
    expire()
  }, step)
  return () => clearInterval(ticking)
}

const askEvery = 1000

/** Minimum pause after a failed search, in milliseconds: there may be many clients. */
const searchEvery = 200

/** No server accepts the connection, or the one that does is not of the wanted kind. */
export class UnsuitableServer extends Data.TaggedError("UnsuitableServer")<{ readonly message: string }> {}

/** Connections that must not be used again: their servers no longer accept the wanted kind of session. */
const unfit = new WeakSet<pg.ClientBase>()

/** Makes a pool drop unfit connections on release. Their callers learn of it from the statement that fails. */
export const dropUnfit = (pool: pg.Pool): void => {
  pool.on("release", (_error, client) => {
    if (unfit.has(client)) void client.end()
  })
}

/** Closes a connection at once, as if it had broken, since a dead server confirms nothing. Its pool forgets it. */
const cut = (client: pg.Client): void => {
  client.connection.stream.destroy()
}

/** The parameters that a server reports about a session at its start, and whenever they change. */
interface Session {
  readonly isStandby: boolean | undefined
  readonly isReadOnly: boolean | undefined
}

/** Why a session is not of the wanted kind; undefined if it is. Unreported facts are not a reason. */
const refusalOf = (kind: SessionKind, { isReadOnly, isStandby }: Session): string | undefined => {
  if (kind === "any") return undefined
  if (kind === "standby") return isStandby === false ? "the server is not a standby" : undefined
  if (isStandby === true) return "the server is a standby"
  return kind === "read-write" && isReadOnly === true ? "the server only allows reading" : undefined
}

/** A setting that `pg`'s connection reports by an event, which its types omit. */
interface Reported {
  readonly parameterName: string
  readonly parameterValue: string
}

const nameOf = ({ name, port }: Host): string => `${name}:${port}`

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const ignore = (): void => {}

export class Hosts {
  readonly #target: DatabaseTarget
  readonly #applicationName: string
  /** The accepted connections, with their servers' addresses. */
  readonly #open = new Map<pg.Client, string>()
  readonly #sessions = new WeakMap<pg.Client, Session>()
  /** The host that last accepted a connection; undefined once a connection broke. */
  #known: Host | undefined
  #search: Promise<Host> | undefined

  constructor(target: DatabaseTarget, applicationName: string) {
    this.#target = target
    this.#applicationName = applicationName
  }

  get mayMove(): boolean {
    return this.#target.hosts.length > 1 || this.#target.saysKind
  }

  /** A class of clients that connect to the right server; a client that finds another one fails to connect. */
  clientsOf(Client: typeof pg.Client): typeof pg.Client {
    const direct = (client: pg.Client, open: () => Promise<unknown>) => this.#connect(client, open)
    return class extends Client {
      override connect: pg.Client["connect"] = ((callback?: (error: unknown) => void) => {
        const connected = direct(this, () => super.connect()).then(() => this)
        if (callback === undefined) return connected
        return void connected.then(() => callback(null), callback)
      }) as pg.Client["connect"]
    }
  }

  /**
   * Keeps a connection of its own open to detect the loss of its server, even a silent one, as of a machine that lost
   * power. When another server has replaced it, all connections to the old one are closed.
   */
  watch(Client: typeof pg.Client): Effect.Effect<never> {
    let watched: string | undefined
    const stay = Effect.acquireUseRelease(
      Effect.sync(() => {
        const client = new (this.clientsOf(Client))({
          connectionString: this.#target.url,
          application_name: `${this.#applicationName} watch`,
          connectionTimeoutMillis: timeoutMillis,
          query_timeout: timeoutMillis,
          keepAlive: true
        })
        client.on("error", ignore)
        return client
      }),
      (client) =>
        Effect.gen(this, function* () {
          yield* Effect.tapError(
            Effect.tryPromise(() => client.connect()),
            // Silent before the watch has reached it once: the pools know it from the connections that they opened
            () => Effect.sync(() => (watched ??= this.#open.values().next().value))
          )
          const server = this.#open.get(client)
          if (server !== watched) this.#cutAllTo(watched)
          watched = server
          while (!unfit.has(client)) {
            yield* Effect.sleep(askEvery)
            yield* Effect.tryPromise(() => client.query("SELECT 1"))
          }
        }),
      (client) => Effect.sync(() => cut(client))
    )
    const forget = Effect.sync(() => {
      this.#known = undefined
    })
    return Effect.ignore(stay).pipe(
      Effect.zipRight(forget),
      Effect.zipRight(Effect.sleep(searchEvery)),
      Effect.withTracerEnabled(false),
      Effect.forever
    )
  }

  #cutAllTo(server: string | undefined): void {
    for (const [client, itsServer] of this.#open) if (itsServer === server) cut(client)
  }

  async #connect(client: pg.Client, open: () => Promise<unknown>): Promise<void> {
    const host = this.#target.hosts.length > 1 ? (this.#known ?? (await this.#find())) : undefined
    await this.#connectTo(host, client, open)
    this.#known = host
  }

  /** The first host to accept a connection. Concurrent callers share the search, and briefly its failure. */
  #find(): Promise<Host> {
    if (this.#search !== undefined) return this.#search
    const search = this.#tryAll()
    this.#search = search
    const end = () => {
      this.#search = undefined
    }
    search.then(end, () => setTimeout(end, searchEvery).unref())
    return search
  }

  /** Tries all hosts at the same time, so that nobody waits for a dead one. */
  async #tryAll(): Promise<Host> {
    const { hosts, url } = this.#target
    const tries = hosts.map(async (host) => {
      const client = new pg.Client({ connectionString: url, application_name: this.#applicationName })
      client.on("error", ignore)
      try {
        await this.#connectTo(host, client, () => client.connect())
        return host
      } catch (error) {
        throw new Error(`${nameOf(host)}: ${reasonOf(error)}`)
      } finally {
        void client.end().catch(ignore)
      }
    })
    return Promise.any(tries).catch((error: unknown) => {
      const reasons = error instanceof AggregateError ? error.errors.map(reasonOf) : [reasonOf(error)]
      throw new UnsuitableServer({ message: `No host accepts the connection (${reasons.join("; ")})` })
    })
  }

  async #connectTo(host: Host | undefined, client: pg.Client, open: () => Promise<unknown>): Promise<void> {
    if (host !== undefined) Object.assign(client, { host: host.name, port: host.port })
    this.#listen(client)
    const tooLate = new UnsuitableServer({ message: `no connection within ${timeoutMillis} ms` })
    const end = host === undefined ? ignore : afterTimeout(() => client.connection.stream.destroy(tooLate))
    try {
      await open()
      await this.#complete(client)
      const refusal = refusalOf(this.#target.kind, this.#sessionOf(client))
      if (refusal !== undefined) throw new UnsuitableServer({ message: refusal })
      this.#keep(client, host)
    } catch (error) {
      if (this.#known === host) this.#known = undefined
      cut(client)
      throw error
    } finally {
      end()
    }
  }

  #sessionOf(client: pg.Client): Session {
    return this.#sessions.get(client) ?? { isStandby: undefined, isReadOnly: undefined }
  }

  /** Marks the client as unfit when the server is no longer of the wanted kind. */
  #listen(client: pg.Client): void {
    const { connection } = client
    // If it breaks, its server may be gone. An error without a listener would end the process
    client.on("error", () => {
      this.#known = undefined
    })
    connection.on("parameterStatus", ({ parameterName, parameterValue }: Reported) => {
      const isOn = parameterValue === "on"
      if (parameterName === "in_hot_standby") this.#note(client, { isStandby: isOn })
      if (parameterName === "default_transaction_read_only") this.#note(client, { isReadOnly: isOn })
    })
    // A write was refused: behind a proxy or a pooler, the server can change while the connection stays
    connection.on("errorMessage", ({ code }: { readonly code?: string }) => {
      if (code === "25006" && this.#target.kind !== "standby") this.#retire(client)
    })
  }

  #note(client: pg.Client, said: Partial<Session>): void {
    const session = { ...this.#sessionOf(client), ...said }
    this.#sessions.set(client, session)
    if (this.#open.has(client) && refusalOf(this.#target.kind, session) !== undefined) this.#retire(client)
  }

  #retire(client: pg.Client): void {
    unfit.add(client)
    this.#known = undefined
  }

  /** Queries what the server has not reported: poolers may not pass reports on. */
  async #complete(client: pg.Client): Promise<void> {
    const { isReadOnly, isStandby } = this.#sessionOf(client)
    const isEnough = this.#target.kind === "any" || (isStandby !== undefined && isReadOnly !== undefined)
    if (isEnough) return
    const { rows } = await client.query<Required<Session>>(
      `SELECT pg_is_in_recovery() AS "isStandby", current_setting('transaction_read_only') = 'on' AS "isReadOnly"`
    )
    if (rows[0] !== undefined) this.#note(client, rows[0])
  }

  #keep(client: pg.Client, host: Host | undefined): void {
    const { stream } = client.connection
    const { remoteAddress, remotePort } = stream instanceof Socket ? stream : {}
    this.#open.set(client, `${remoteAddress ?? host?.name}:${remotePort ?? host?.port}`)
    client.once("end", () => this.#open.delete(client))
  }
}
