/**
 * Guarded connections to consumers: a connection goes to an address that was checked, and to no other.
 *
 * An undici `Client` stands for one connection, so that the end of one attempt (its deadline, an interruption, an
 * answer that is too long) ends the connection in whatever phase it is, including the look-up. There is no queue for
 * connections: attempts to one origin, which may be shared by many customers (a common receiving service), never wait
 * for one another. How many are in flight is for the caller to limit; how many stay open afterwards is limited here.
 */
import { connect as connectTcp, isIP, type LookupFunction, type Socket } from "node:net"
import { performance } from "node:perf_hooks"
import { connect as connectTls, type SecureContext } from "node:tls"
import { Cause, type Context, Effect, Exit, Option, Runtime } from "effect"
import { type buildConnector, Client, errors } from "undici"
import { type AddressPolicy, isAddressAllowed } from "../../endpoints/AddressPolicy.ts"
import {
  bareHostname,
  type DestinationRefusal,
  type DestinationUnresolvable,
  DnsResolver,
  type ResolvedAddress,
  resolveDestination
} from "../../endpoints/DestinationUrl.ts"
import { ConnectError, connectErrorCode, TransportBug } from "./TransportError.ts"

/** What the connections have in common. */
export interface ConnectionSettings {
  readonly resolver: Context.Tag.Service<DnsResolver>
  /** The runtime in which the resolver runs. */
  readonly runtime: Runtime.Runtime<never>
  /** Which certificate authorities are trusted. */
  readonly secureContext: SecureContext
  /** How many connections stay open for reuse, per origin. */
  readonly idlePerOrigin: number
  /** How many connections stay open for reuse, for all origins together. */
  readonly idleInAll: number
  /** How long one stays open unused, in milliseconds. */
  readonly idleMillis: number
  /** For how long after its look-up one is used for further attempts, in milliseconds. */
  readonly maxAgeMillis: number
}

/** The largest header section of an answer, in bytes. */
export const maxHeaderBytes = 16 * 1024

/** How long one address may take to connect while there is another to try, in milliseconds. */
const nextAddressAfterMillis = 500

/** Connections under one address policy; they are never shared with those of another policy. */
export class Connections {
  readonly #settings: ConnectionSettings
  readonly #policy: AddressPolicy
  readonly #idle = new Map<string, Array<Connection>>()
  /** The same, for all origins together, the longest idle first. */
  readonly #idleInAll = new Set<Connection>()
  readonly #open = new Set<Connection>()

  constructor(settings: ConnectionSettings, policy: AddressPolicy) {
    this.#settings = settings
    this.#policy = policy
  }

  /** A connection to the origin for one attempt: one that was kept open, or otherwise a new one. */
  acquire(origin: string): Connection {
    for (let kept = this.#takeIdle(origin); kept !== undefined; kept = this.#takeIdle(origin)) {
      if (kept.ageMillis < this.#settings.maxAgeMillis) return kept
      this.discard(kept)
    }
    const connection = new Connection(origin, this.#settings, this.#policy, () => this.#disconnected(connection))
    this.#open.add(connection)
    return connection
  }

  /** Gives back a connection whose answer was read to its end. */
  release(connection: Connection): void {
    const kept = this.#idle.get(connection.origin) ?? []
    if (kept.length < this.#settings.idlePerOrigin) {
      connection.reused = true
      kept.push(connection)
      this.#idle.set(connection.origin, kept)
      this.#idleInAll.add(connection)
      this.#dropTooMany()
    } else {
      this.discard(connection)
    }
  }

  /** Closes a connection at once, whatever it is doing. */
  discard(connection: Connection): void {
    this.#open.delete(connection)
    this.#forgetIdle(connection)
    connection.destroy()
  }

  /** Closes all of them. */
  discardAll(): void {
    for (const connection of this.#open) this.discard(connection)
  }

  // The youngest first: if there are too many, the oldest becomes idle and closes
  #takeIdle(origin: string): Connection | undefined {
    const kept = this.#idle.get(origin)
    const connection = kept?.pop()
    if (connection !== undefined) this.#idleInAll.delete(connection)
    if (kept?.length === 0) this.#idle.delete(origin)
    return connection
  }

  #dropTooMany(): void {
    const [oldest] = this.#idleInAll
    if (oldest !== undefined && this.#idleInAll.size > this.#settings.idleInAll) this.discard(oldest)
  }

  #forgetIdle(connection: Connection): boolean {
    this.#idleInAll.delete(connection)
    const kept = this.#idle.get(connection.origin)
    const at = kept?.indexOf(connection) ?? -1
    if (kept === undefined || at < 0) return false
    kept.splice(at, 1)
    if (kept.length === 0) this.#idle.delete(connection.origin)
    return true
  }

  #disconnected(connection: Connection): void {
    if (this.#forgetIdle(connection)) this.discard(connection)
  }
}

/** The error of a closed connection. Made once: with one for each, undici would capture the stack every time. */
const destroyed = new errors.ClientDestroyedError()

/** One connection, from the look-up of its name to its close. */
export class Connection {
  /** Scheme, host and port. */
  readonly origin: string
  /** Takes one request at a time. */
  readonly client: Client
  /** Whether it has served an attempt before. */
  reused = false
  /** Called each time bytes have arrived. */
  onBytes: (() => void) | null = null
  readonly #settings: ConnectionSettings
  readonly #policy: AddressPolicy
  #socket: Socket | null = null
  #cancelLookup: Runtime.Cancel<unknown, unknown> | null = null
  #lookedUpAt = performance.now()

  constructor(origin: string, settings: ConnectionSettings, policy: AddressPolicy, onDisconnect: () => void) {
    this.origin = origin
    this.#settings = settings
    this.#policy = policy
    this.client = new Client(origin, {
      connect: (options, callback) => this.#connect(options, callback),
      // One request at a time, and none of undici's own time-outs: the attempt's deadline covers them all
      pipelining: 1,
      allowH2: false,
      headersTimeout: 0,
      bodyTimeout: 0,
      maxHeaderSize: maxHeaderBytes,
      keepAliveTimeout: settings.idleMillis,
      keepAliveMaxTimeout: settings.idleMillis
    }).on("disconnect", onDisconnect)
  }

  /** Milliseconds since its name was looked up. */
  get ageMillis(): number {
    return performance.now() - this.#lookedUpAt
  }

  /** Bytes received so far, for all requests together. */
  get bytesRead(): number {
    return this.#socket?.bytesRead ?? 0
  }

  /** Ends the look-up, the connecting or the exchange that is under way, and closes. */
  destroy(): void {
    this.client.destroy(destroyed, () => {})
    this.#cancelLookup?.()
    this.#socket?.destroy()
  }

  #connect(options: buildConnector.Options, callback: buildConnector.Callback): void {
    this.#lookedUpAt = performance.now()
    this.#cancelLookup = Runtime.runCallback(this.#settings.runtime)(
      resolveDestination(options.hostname, this.#policy).pipe(
        Effect.provideService(DnsResolver, this.#settings.resolver)
      ),
      {
        onExit: (exit) => {
          this.#cancelLookup = null
          if (this.client.destroyed) return
          if (Exit.isSuccess(exit)) return this.#open(options, exit.value, callback)
          callback(resolutionError(exit.cause), null)
        }
      }
    )
  }

  #open(
    options: buildConnector.Options,
    addresses: ReadonlyArray<ResolvedAddress>,
    callback: buildConnector.Callback
  ): void {
    const secure = options.protocol === "https:"
    const socket = secure
      ? connectTls({ ...tcpOptions(options, addresses), ...tlsOptions(options, this.#settings.secureContext) })
      : connectTcp(tcpOptions(options, addresses))
    this.#socket = socket
    let connected = false
    const fail = (error: ConnectError) => {
      socket.off("error", failed).on("error", () => {})
      socket.destroy()
      callback(error, null)
    }
    const failed = (cause: unknown) =>
      fail(new ConnectError({ errorCode: connectErrorCode(cause, secure && connected), cause }))
    const ready = () => {
      socket.off("error", failed)
      callback(null, socket)
      // After undici's own listener, so that it has read what there was
      socket.on("readable", () => this.onBytes?.())
    }
    socket.on("error", failed)
    // Before TLS sends its first byte: nothing is sent to an address that is not allowed
    socket.prependOnceListener("connect", () => {
      connected = true
      const { remoteAddress } = socket
      if (remoteAddress === undefined) {
        return fail(new ConnectError({ errorCode: "connection_reset", cause: "closed as soon as it was connected" }))
      }
      if (!isAddressAllowed(remoteAddress, this.#policy)) {
        return fail(new ConnectError({ errorCode: "destination_blocked", cause: "connected to another address" }))
      }
      if (!secure) ready()
    })
    if (secure) socket.once("secureConnect", ready)
  }
}

const resolutionError = (cause: Cause.Cause<DestinationRefusal | DestinationUnresolvable>): Error =>
  Option.match(Cause.failureOption(cause), {
    onNone: () => new TransportBug({ cause: Cause.squash(cause) }),
    onSome: (failure) => {
      const errorCode = failure._tag === "DestinationRefusal" ? "destination_blocked" : "dns_failure"
      return new ConnectError({ errorCode, cause: failure })
    }
  })

const tcpOptions = (options: buildConnector.Options, addresses: ReadonlyArray<ResolvedAddress>) => ({
  host: bareHostname(options.hostname),
  port: Number(options.port === "" ? (options.protocol === "https:" ? 443 : 80) : options.port),
  lookup: answerWith(addresses),
  autoSelectFamily: true,
  autoSelectFamilyAttemptTimeout: nextAddressAfterMillis,
  noDelay: true
})

const tlsOptions = (options: buildConnector.Options, secureContext: SecureContext) => {
  const hostname = bareHostname(options.hostname)
  return {
    secureContext,
    // A name is sent and verified; an address is only verified (it may not be sent)
    servername: isIP(hostname) === 0 ? hostname : "",
    ALPNProtocols: ["http/1.1"],
    // Set explicitly, since an environment variable can turn the default off
    rejectUnauthorized: true
  }
}

/** Used in place of a look-up: the addresses that were checked. */
const answerWith =
  (addresses: ReadonlyArray<ResolvedAddress>): LookupFunction =>
  (hostname, options, callback) => {
    if (options.all) return callback(null, [...addresses])
    const [first] = addresses
    if (first === undefined) return callback(new Error(`no address for ${hostname}`), "", 0)
    callback(null, first.address, first.family)
  }
