/**
 * Guarded connections to consumers: a connection goes to an address that was checked, and to no other.
 *
 * There is no queue for connections: attempts to one origin, which may be shared by many customers (a common receiving
 * service), never wait for one another. How many are in flight is for the caller to limit; how many stay open afterwards
 * is limited here.
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
  /** How long one stays open unused, in milliseconds. */
  readonly idleMillis: number
  /** For how long after its look-up one is used for further attempts, in milliseconds. */
  readonly maxAgeMillis: number
}

/** How much sooner than the consumer said a connection is given up, in milliseconds: what is sent then may meet its close. */
const sooner = 2000

/** How many origins are remembered. */
const maxOrigins = 10_000

/** Connections under one address policy; they are never shared with those of another policy. */
export class Connections {
  readonly #settings: ConnectionsSettings
  readonly #policy: AddressPolicy
  readonly #origins = new Map<string, Origin>()
  readonly #open = new Set<Connection>()
  /** Those that serve nobody, the longest idle first. */
  readonly #unused: Deadlines

  constructor(settings: ConnectionsSettings, policy: AddressPolicy) {
    this.#settings = settings
    this.#policy = policy
    this.#unused = new Deadlines(settings.idleMillis)
  }

  /** An origin, for `acquire`. Keep it: what it has is shared by all who got the same one. */
  originOf(name: string): Origin {
    const known = this.#origins.get(name)
    if (known !== undefined) return known
    const origin: Origin = { name, idle: [] }
    // What is forgotten goes on to serve those who have it
    if (this.#origins.size >= maxOrigins) this.#origins.clear()
    this.#origins.set(name, origin)
    return origin
  }

  /**
   * A connection to the origin for one attempt: one that was kept open, or otherwise a new one, which is not opened
   * yet. The other side may have closed a kept one, without this being known.
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

  /** A new connection to the origin for one attempt, which is not opened yet. */
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
   * Gives back a connection whose answer was read to its end. The consumer said that it keeps it for so many seconds,
   * or nothing about it.
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

  /** Closes all of them. What they serve is interrupted. */
  discardAll(): void {
    for (const connection of [...this.#open]) {
      const { user } = connection
      this.discard(connection)
      user?.onBroken(new ConnectError({ errorCode: "interrupted", cause: "the transport is closed" }))
    }
  }

  // The youngest first: if there are too many, the oldest becomes idle and closes
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
