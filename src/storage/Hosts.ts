import { Socket } from "node:net"
import { Data, Effect } from "effect"
import pg from "pg"
import type { DatabaseTarget, Host, SessionKind } from "../settings/DatabaseUrl.ts"

/**
 * Connections go to the server that accepts what they are for: usually the primary, wherever it is. `pg` knows one host
 * and takes whatever it finds there.
 */

/** How long a host may take to accept a connection, or the watched one to answer, in milliseconds. */
const patience = 2000

/** Calls back after a time in which this process itself could work: a busy one must not take its own delay for another's. */
const afterPatience = (expire: () => void): (() => void) => {
  const step = 100
  let left = patience / step
  const ticking = setInterval(() => {
    left -= 1
    if (left > 0) return
    clearInterval(ticking)
    expire()
  }, step)
  return () => clearInterval(ticking)
}

/** How often the watched connection is asked, in milliseconds. */
const askEvery = 1000

/** After a search in vain, the next one begins so much later at the earliest, in milliseconds: clients may be many. */
const searchEvery = 200

/** No server takes the connection, or the one that does is not of the kind that is wanted. */
export class UnsuitableServer extends Data.TaggedError("UnsuitableServer")<{ readonly message: string }> {}

/** Connections that must not be used again: their servers no longer accept what they are for. */
const unfit = new WeakSet<pg.ClientBase>()

/** Has a pool drop such connections when they come back. The statement that fails meanwhile tells its caller so. */
export const dropUnfit = (pool: pg.Pool): void => {
  pool.on("release", (_error, client) => {
    if (unfit.has(client)) void client.end()
  })
}

/** Ends a connection at once, as if it had broken: a server that is gone confirms nothing. Its pool forgets it. */
const cut = (client: pg.Client): void => {
  client.connection.stream.destroy()
}

/** What a server says of a session by itself: at its start, and whenever it changes. */
interface Session {
  readonly isStandby: boolean | undefined
  readonly isReadOnly: boolean | undefined
}

/** Why a session is not of a kind; undefined if it is. What the server did not say is no reason. */
const refusalOf = (kind: SessionKind, { isReadOnly, isStandby }: Session): string | undefined => {
  if (kind === "any") return undefined
  if (kind === "standby") return isStandby === false ? "the server is not a standby" : undefined
  if (isStandby === true) return "the server is a standby"
  return kind === "read-write" && isReadOnly === true ? "the server only allows reading" : undefined
}

/** The settings that `pg`'s connection reports by an event, which its types leave out. */
interface Reported {
  readonly parameterName: string
  readonly parameterValue: string
}

const nameOf = ({ name, port }: Host): string => `${name}:${port}`

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const ignore = (): void => {}

/** The servers behind a URL, shared by all pools of a process that use it. */
export class Hosts {
  readonly #target: DatabaseTarget
  readonly #applicationName: string
  /** The connections that were accepted, with the address of their server. */
  readonly #open = new Map<pg.Client, string>()
  readonly #sessions = new WeakMap<pg.Client, Session>()
  /** The host that accepted a connection last; unknown once a connection broke. */
  #known: Host | undefined
  #search: Promise<Host> | undefined

  constructor(target: DatabaseTarget, applicationName: string) {
    this.#target = target
    this.#applicationName = applicationName
  }

  /** Whether the server may change: only then is a connection watched. */
  get mayMove(): boolean {
    return this.#target.hosts.length > 1 || this.#target.saysKind
  }

  /** A class of clients that connect to the right server. A client that finds another one fails to connect. */
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
   * Keeps a connection of its own open, and notices when its server is gone: also if it says nothing, as a machine
   * without power does. When another server has taken its place, all connections to the one before are cut.
   */
  watch(Client: typeof pg.Client): Effect.Effect<never> {
    let watched: string | undefined
    const stay = Effect.acquireUseRelease(
      Effect.sync(() => {
        const client = new (this.clientsOf(Client))({
          connectionString: this.#target.url,
          application_name: `${this.#applicationName} watch`,
          connectionTimeoutMillis: patience,
          query_timeout: patience,
          keepAlive: true
        })
        client.on("error", ignore)
        return client
      }),
      (client) =>
        Effect.gen(this, function* () {
          yield* Effect.tryPromise(() => client.connect())
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

  /** The first host to accept a connection. Concurrent callers share the search, and for a moment its failure. */
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

  /** Asks all hosts at the same time, so that nobody waits for one that is gone. */
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
    const tooLate = new UnsuitableServer({ message: `no connection within ${patience} ms` })
    const end = host === undefined ? ignore : afterPatience(() => client.connection.stream.destroy(tooLate))
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

  /** Notes what the server says of the session, and marks the client when it is no longer of the wanted kind. */
  #listen(client: pg.Client): void {
    const { connection } = client
    // If it breaks, so may have its server. An error without a listener would end the process
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

  /** Asks for what the server has not said by itself, which poolers may keep to themselves. */
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
