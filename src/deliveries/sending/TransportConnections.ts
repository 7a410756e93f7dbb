/**
 * Guarded connections to consumers: they connect only to addresses that were checked.
 *
 * There is no queue for connections: attempts to one origin, which may be shared by many customers (a common receiving
 * service), never wait for one another. How many are in flight is for the caller to limit; how many stay open
 * afterwards is limited here.
 */
import { performance } from "node:perf_hooks"
import type { AddressPolicy } from "../../endpoints/AddressPolicy.ts"
import { Deadlines } from "./Deadlines.ts"
import { Connection, type ConnectionSettings, type ConnectionUser, type Origin } from "./TransportConnection.ts"
import { ConnectError } from "./TransportError.ts"

export interface ConnectionsSettings extends ConnectionSettings {
  /** How many connections stay open for reuse, per origin. */
  readonly idlePerOrigin: number
  /** How many connections stay open for reuse, for all origins together. */
  readonly idleInAll: number
  /** How long a connection stays open unused, in milliseconds. */
  readonly idleMillis: number
  /** How long after its DNS look-up a connection may be reused, in milliseconds. */
  readonly maxAgeMillis: number
}

/**
 * How much earlier than the consumer announced a connection is dropped, in milliseconds: a later request may cross with
 * its close.
 */
const sooner = 2000

/** The most origins that are cached. */
const maxOrigins = 10_000

/** Connections under one address policy; they are never shared with those of another policy. */
export class Connections {
  readonly #settings: ConnectionsSettings
  readonly #policy: AddressPolicy
  readonly #origins = new Map<string, Origin>()
  readonly #open = new Set<Connection>()
  /** Idle connections, the longest idle first. */
  readonly #unused: Deadlines

  constructor(settings: ConnectionsSettings, policy: AddressPolicy) {
    this.#settings = settings
    this.#policy = policy
    this.#unused = new Deadlines(settings.idleMillis)
  }

  /** Returns an origin for `acquire`. Keep it: its idle connections are shared by all holders of the same object. */
  originOf(name: string): Origin {
    const known = this.#origins.get(name)
    if (known !== undefined) return known
    const origin: Origin = { name, idle: [] }
    // Forgotten origins keep serving their holders
    if (this.#origins.size >= maxOrigins) this.#origins.clear()
    this.#origins.set(name, origin)
    return origin
  }

  /**
   * Returns a connection to the origin for one attempt: a kept-alive one, or else a new one that is not opened yet. The
   * other side may have closed a kept-alive one unnoticed.
   */
  acquire(origin: Origin, user: ConnectionUser): Connection {
    for (let kept = this.#takeIdle(origin); kept !== undefined; kept = this.#takeIdle(origin)) {
      if (kept.ageMillis < this.#settings.maxAgeMillis && performance.now() < kept.keptUntil) {
        kept.user = user
        return kept
      }
      this.discard(kept)
    }
    return this.create(origin, user)
  }

  /** Creates a connection to the origin for one attempt, without opening it. */
  create(origin: Origin, user: ConnectionUser): Connection {
    const connection = new Connection(origin, this.#settings, {
      policy: this.#policy,
      user,
      onUnused: () => this.discard(connection)
    })
    this.#open.add(connection)
    return connection
  }

  /**
   * Returns a connection to the pool after its answer was read completely. `keepAliveSeconds`: how long the consumer
   * announced to keep it open; null if it did not.
   */
  release(connection: Connection, keepAliveSeconds: number | null): void {
    const { idleInAll, idleMillis, idlePerOrigin } = this.#settings
    const { idle } = connection.origin
    const millis = Math.min(idleMillis, keepAliveSeconds === null ? idleMillis : keepAliveSeconds * 1000 - sooner)
    if (millis <= 0 || idle.length >= idlePerOrigin) {
      this.discard(connection)
      return
    }
    connection.reused = true
    connection.user = null
    connection.keptUntil = performance.now() + millis
    idle.push(connection)
    this.#unused.add(connection)
    // Closes it
    if (this.#unused.size > idleInAll) this.#unused.first?.expire()
  }

  /** Closes a connection at once, whatever it is doing. */
  discard(connection: Connection): void {
    this.#open.delete(connection)
    this.#forgetIdle(connection)
    connection.destroy()
  }

  /** Closes all connections and interrupts their exchanges. */
  discardAll(): void {
    for (const connection of [...this.#open]) {
      const { user } = connection
      this.discard(connection)
      user?.onBroken(new ConnectError({ errorCode: "interrupted", cause: "the transport is closed" }))
    }
  }

  // The youngest first, so that surplus connections go idle and close
  #takeIdle({ idle }: Origin): Connection | undefined {
    const connection = idle.pop()
    if (connection !== undefined) this.#unused.delete(connection)
    return connection
  }

  #forgetIdle(connection: Connection): void {
    this.#unused.delete(connection)
    const { idle } = connection.origin
    const at = idle.indexOf(connection)
    if (at >= 0) idle.splice(at, 1)
  }
}
