import { connect as connectTcp, isIP, type Socket } from "node:net"
import { performance } from "node:perf_hooks"
import { connect as connectTls, type SecureContext } from "node:tls"
import { Cause, type Context, Data, Effect, Exit, Option, Runtime } from "effect"
import { errorCode } from "../../platform/errors/ErrorCode.ts"
import { BoundedMap } from "../../platform/kit/Concurrency.ts"
import { bareHostname } from "../../platform/kit/UrlServer.ts"
import type { AttemptErrorCode } from "../attempts/Outcome.ts"
import {
  type AddressPolicy,
  type DestinationRefusal,
  type DestinationUnresolvable,
  DnsResolver,
  isAddressAllowed,
  type ResolvedAddress,
  resolveDestination
} from "./DestinationUrl.ts"

/**
 * One timer for all attempts in flight. They all have the same timeout, so they expire in the order in which they
 * started, and only the oldest needs a timer. A timer (or an abort signal) for each would cost half of the sending
 * rate.
 */

/**
 * How many attempts to endpoints that hang begin or end before the event loop gets to other work: hundreds are due at
 * once, or expire together, and each costs half a millisecond.
 */
export const fewAtOnce = 4

/** The longest pause between two such batches, in milliseconds, if simultaneous deadlines may be spread over time. */
const longestPause = 10

/**
 * Something with a deadline: a node in the linked list of those that share a timeout. A `Map` of all would be copied
 * again and again as they come and go, and V8 keeps an old copy's contents until a full garbage collection.
 */
export abstract class Expiring {
  /** Its list, its neighbours there, and when it expires, by `performance.now()`. */
  deadlines: Deadlines | null = null
  sooner: Expiring | null = null
  later: Expiring | null = null
  endsAt = 0

  /** Called once, when the timeout has passed since it was added; must not throw. */
  abstract expire(): void
}

/** Things in progress that share a timeout. Each is in at most one such list. */
export class Deadlines {
  readonly #timeoutMillis: number
  readonly #spreadMillis: number
  #first: Expiring | null = null
  #last: Expiring | null = null
  #size = 0
  #timer: NodeJS.Timeout | null = null

  /**
   * `timeoutMillis`: how long each may take, in milliseconds, greater than 0. `spreadMillis`: how much later some may
   * expire if many would expire at once, so that ending them leaves time for other work.
   */
  constructor(timeoutMillis: number, spreadMillis = 0) {
    this.#timeoutMillis = timeoutMillis
    this.#spreadMillis = spreadMillis
  }

  get size(): number {
    return this.#size
  }

  get first(): Expiring | null {
    return this.#first
  }

  add(expiring: Expiring): void {
    expiring.deadlines = this
    expiring.endsAt = performance.now() + this.#timeoutMillis
    expiring.sooner = this.#last
    if (this.#last === null) this.#first = expiring
    else this.#last.later = expiring
    this.#last = expiring
    this.#size += 1
    if (this.#timer === null) this.#arm(this.#timeoutMillis)
  }

  /** Removes one that has ended before its deadline; no effect if it has already expired. */
  delete(expiring: Expiring): void {
    if (expiring.deadlines !== this) return
    const { later, sooner } = expiring
    if (sooner === null) this.#first = later
    else sooner.later = later
    if (later === null) this.#last = sooner
    else later.sooner = sooner
    this.#size -= 1
    expiring.deadlines = null
    expiring.sooner = null
    expiring.later = null
  }

  clear(): void {
    while (this.#first !== null) this.delete(this.#first)
  }

  #arm(millis: number): void {
    // Timers run before arrived data is read: after a pause of this process, answers that came in time would count as
    // late
    this.#timer = setTimeout(() => setImmediate(() => this.#sweep()), Math.ceil(millis))
    this.#timer.unref()
  }

  #sweep(): void {
    const now = performance.now()
    let expired = 0
    for (let expiring = this.#first; expiring !== null; expiring = this.#first) {
      if (expiring.endsAt > now) {
        this.#arm(expiring.endsAt - now)
        return
      }
      if (expired === fewAtOnce) {
        this.#sweepAfter(this.#pauseAt(now, expiring))
        return
      }
      expired += 1
      this.delete(expiring)
      // This may add another, which then comes last
      expiring.expire()
    }
    this.#timer = null
  }

  /** How long to wait before the next batch, so that all that are due by now have expired when the spread ends. */
  #pauseAt(now: number, first: Expiring): number {
    const left = first.endsAt + this.#spreadMillis - now
    if (left <= 0) return 0
    let due = 0
    for (let one: Expiring | null = first; one !== null && one.endsAt <= now; one = one.later) due += 1
    return Math.min(longestPause, (left * fewAtOnce) / due)
  }

  #sweepAfter(millis: number): void {
    if (millis < 1) setImmediate(() => this.#sweep())
    else setTimeout(() => this.#sweep(), millis).unref()
  }
}

/**
 * Guarded connections to consumers: they connect only to addresses that were checked.
 *
 * There is no queue for connections: attempts to one origin, which may be shared by many customers (a common receiving
 * service), never wait for one another. How many are in flight is for the caller to limit; how many stay open
 * afterwards is limited here.
 */

/** How long to wait for one address before also trying the next, in milliseconds. */
const nextAddressAfterMillis = 500

/** The most addresses of a name that are tried: strangers control how many there are. */
const maxAddresses = 16

interface ConnectListener {
  /** Called before any other listener of the socket, such as the one by which TLS sends its first byte. */
  readonly onConnected: (socket: Socket) => void
  readonly onFailed: (errors: ReadonlyArray<unknown>) => void
}

/**
 * Connects to whichever address answers first (RFC 8305): the next one is tried when one has failed, or has been silent
 * for a while; the silent one continues in parallel. So a dead address does not hold up the others, and a slow one is
 * not given up for a dead one. The caller must limit the total time.
 *
 * @returns cancels it; otherwise the listener is called once
 */
const connectToAny = (
  addresses: ReadonlyArray<ResolvedAddress>,
  connect: (address: ResolvedAddress) => Socket,
  { onConnected, onFailed }: ConnectListener
): (() => void) => {
  const untried = inTurns(addresses)
  const tried = new Set<Socket>()
  const errors: Array<unknown> = []
  let timer: NodeJS.Timeout | undefined
  const cancel = (): void => {
    clearTimeout(timer)
    for (const socket of tried) socket.destroy()
    tried.clear()
  }
  const tryNext = (): void => {
    clearTimeout(timer)
    const address = untried.shift()
    if (address === undefined) return
    const socket = connect(address)
    tried.add(socket)
    socket.on("error", (error) => {
      // Ignore sockets that were cancelled or have connected
      if (!tried.delete(socket)) return
      errors.push(error)
      if (untried.length > 0) tryNext()
      else if (tried.size === 0) onFailed(errors)
    })
    socket.prependOnceListener("connect", () => {
      tried.delete(socket)
      cancel()
      onConnected(socket)
    })
    if (untried.length > 0) timer = setTimeout(tryNext, nextAddressAfterMillis)
  }
  tryNext()
  return cancel
}

/** Alternates the address families, beginning with the first address's: all of one family may be unreachable. */
const inTurns = (addresses: ReadonlyArray<ResolvedAddress>): Array<ResolvedAddress> => {
  const first = addresses.filter(({ family }) => family === addresses[0]?.family)
  const second = addresses.filter(({ family }) => family !== addresses[0]?.family)
  return addresses
    .flatMap((_, index) => [...first.slice(index, index + 1), ...second.slice(index, index + 1)])
    .slice(0, maxAddresses)
}

interface ConnectionSettings {
  readonly resolver: Context.Tag.Service<DnsResolver>
  /** The runtime in which the resolver runs. */
  readonly runtime: Runtime.Runtime<never>
  /** Which certificate authorities are trusted. */
  readonly secureContext: SecureContext
  /** How many connections stay open for reuse, per origin. */
  readonly idlePerOrigin: number
  /** How many connections stay open for reuse, for all origins together. */
  readonly idleInAll: number
  /** How long a connection stays open unused, in milliseconds. */
  readonly idleMillis: number
  /** How long after its DNS look-up a connection may be reused, in milliseconds. */
  readonly maxAgeMillis: number
}

/** A consumer's scheme, host and port, with its idle connections. */
export interface Origin {
  readonly name: string
  readonly connections: Connections
  /** The longest idle first. */
  readonly idle: Array<Connection>
}

/** The user of a connection. The methods must not throw. */
export interface ConnectionUser {
  /** The connection is established, and the request can be written. */
  readonly onReady: () => void
  /** Bytes arrived. They are overwritten after the call. */
  readonly onBytes: (bytes: Buffer) => void
  readonly onEnd: () => void
  /** The connection broke, or was never made. Nothing follows. */
  readonly onBroken: (error: Error) => void
}

/** The read buffer of all sockets: its contents are consumed before the next socket reads. */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024)

/** One connection. It serves one user at a time, and none while it is kept open for reuse. */
export class Connection extends Expiring {
  readonly origin: Origin
  /** Whether it has served an attempt before. */
  reused = false
  user: ConnectionUser | null
  /** When it stops being reusable, by `performance.now()`; the other side may close it after that. */
  keptUntil = 0
  /** When it was created, and its name was looked up. */
  readonly lookedUpAt = performance.now()
  #socket: Socket | null = null
  /** Ends the look-up, and then the connecting. */
  #cancel: () => void = () => {}

  /** Does nothing before `open`. */
  constructor(origin: Origin, user: ConnectionUser) {
    super()
    this.origin = origin
    this.user = user
  }

  /** Whether everything written has left this process. */
  get isWritten(): boolean {
    return this.#socket?.writableLength === 0
  }

  /** Looks the name up and connects. */
  open(): void {
    const url = new URL(this.origin.name)
    const { policy, settings } = this.origin.connections
    const lookUp = resolveDestination(url.hostname, policy).pipe(Effect.provideService(DnsResolver, settings.resolver))
    let isLookedUp = false
    const cancel = Runtime.runCallback(settings.runtime)(lookUp, {
      onExit: (exit) => {
        isLookedUp = true
        if (this.user === null) return
        if (Exit.isSuccess(exit)) this.#connect(url, exit.value)
        else this.user.onBroken(resolutionError(exit.cause))
      }
    })
    // An IP address resolves synchronously
    if (!isLookedUp) this.#cancel = cancel
  }

  write(request: string): void {
    this.#socket?.write(request)
  }

  /** Ends the look-up, the connecting or the exchange in progress, and closes. Its user receives no more calls. */
  destroy(): void {
    this.user = null
    this.#cancel()
    this.#socket?.destroy()
  }

  /** It has been idle for too long, or something has happened to it meanwhile: it can't be reused. */
  expire(): void {
    this.origin.connections.discard(this)
  }

  #connect(url: URL, addresses: ReadonlyArray<ResolvedAddress>): void {
    const secure = url.protocol === "https:"
    const port = Number(url.port === "" ? (secure ? 443 : 80) : url.port)
    const onread = { buffer: readBuffer, callback: this.#onRead }
    const { secureContext } = this.origin.connections.settings
    this.#cancel = connectToAny(
      addresses,
      ({ address }) => {
        const tcp = { host: address, port, noDelay: true, onread }
        return secure ? connectTls({ ...tcp, ...tlsOptions(url, secureContext) }) : connectTcp(tcp)
      },
      {
        onConnected: (socket) => {
          this.#socket = socket
          const refusal = this.#refusalOf(socket.remoteAddress)
          if (refusal !== null) this.#fail(refusal)
          else if (secure) this.#handshake(socket)
          else this.#ready(socket)
        },
        onFailed: (errors) => this.#fail(new ConnectError({ errorCode: connectErrorCode(errors), cause: errors }))
      }
    )
  }

  /** Checks the address before the first byte: nothing is sent to one that is not allowed. */
  #refusalOf(remoteAddress: string | undefined): ConnectError | null {
    if (remoteAddress === undefined) {
      return new ConnectError({ errorCode: "connection_reset", cause: "closed as soon as it was connected" })
    }
    if (isAddressAllowed(remoteAddress, this.origin.connections.policy)) return null
    return new ConnectError({ errorCode: "destination_blocked", cause: "connected to another address" })
  }

  #handshake(socket: Socket): void {
    const failed = (cause: unknown) => this.#fail(new ConnectError({ errorCode: handshakeErrorCode(cause), cause }))
    socket.on("error", failed)
    socket.once("secureConnect", () => {
      socket.off("error", failed)
      this.#ready(socket)
    })
  }

  #ready(socket: Socket): void {
    socket.on("error", (error) => this.#broken(error))
    socket.on("end", () => this.#ended())
    socket.on("close", () => this.#ended())
    this.user?.onReady()
  }

  #fail(error: ConnectError): void {
    this.#socket?.on("error", () => {}).destroy()
    this.user?.onBroken(error)
  }

  readonly #onRead = (count: number, buffer: Uint8Array): boolean => {
    // Unsolicited data
    if (this.user === null) this.expire()
    else this.user.onBytes(Buffer.from(buffer.buffer, buffer.byteOffset, count))
    return true
  }

  #ended(): void {
    if (this.user === null) this.expire()
    else this.user.onEnd()
  }

  #broken(error: Error): void {
    if (this.user === null) this.expire()
    else this.user.onBroken(error)
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

const tlsOptions = (url: URL, secureContext: SecureContext) => {
  const hostname = bareHostname(url.hostname)
  return {
    secureContext,
    // A name is sent and verified; an address is only verified (it may not be sent)
    servername: isIP(hostname) === 0 ? hostname : "",
    ALPNProtocols: ["http/1.1"],
    // Set explicitly, since an environment variable can turn the default off
    rejectUnauthorized: true
  }
}

/**
 * How much earlier than the consumer announced a connection is dropped, in milliseconds: a later request may cross with
 * its close.
 */
const sooner = 2000

/** Connections under one address policy; they are never shared with those of another policy. */
export class Connections {
  readonly settings: ConnectionSettings
  readonly policy: AddressPolicy
  readonly #origins = new BoundedMap<Origin>()
  readonly #open = new Set<Connection>()
  /** Idle connections, the longest idle first. */
  readonly #unused: Deadlines

  constructor(settings: ConnectionSettings, policy: AddressPolicy) {
    this.settings = settings
    this.policy = policy
    this.#unused = new Deadlines(settings.idleMillis)
  }

  /** Returns an origin for `acquire`. Its idle connections are shared by all that hold it, even once it is forgotten. */
  originOf(name: string): Origin {
    return this.#origins.getOrSet(name, () => ({ name, connections: this, idle: [] }))
  }

  /**
   * Returns a connection to the origin for one attempt: a kept-alive one, or else a new one that is not opened yet. The
   * other side may have closed a kept-alive one unnoticed.
   */
  acquire(origin: Origin, user: ConnectionUser): Connection {
    for (let kept = this.#takeIdle(origin); kept !== undefined; kept = this.#takeIdle(origin)) {
      if (performance.now() < kept.keptUntil) {
        kept.user = user
        return kept
      }
      this.discard(kept)
    }
    return this.create(origin, user)
  }

  /** Creates a connection to the origin for one attempt, without opening it. */
  create(origin: Origin, user: ConnectionUser): Connection {
    const connection = new Connection(origin, user)
    this.#open.add(connection)
    return connection
  }

  /**
   * Returns a connection to the pool after its answer was read completely. `keepAliveSeconds`: how long the consumer
   * announced to keep it open; null if it did not.
   */
  release(connection: Connection, keepAliveSeconds: number | null): void {
    const { idleInAll, idleMillis, idlePerOrigin, maxAgeMillis } = this.settings
    const { idle } = connection.origin
    const millis = Math.min(idleMillis, keepAliveSeconds === null ? idleMillis : keepAliveSeconds * 1000 - sooner)
    if (millis <= 0 || idle.length >= idlePerOrigin) {
      this.discard(connection)
      return
    }
    connection.reused = true
    connection.user = null
    connection.keptUntil = Math.min(performance.now() + millis, connection.lookedUpAt + maxAgeMillis)
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

/**
 * Maps network errors to the sanitized codes that the history shows (contract 9.8). The codes tell integrators what
 * they can act on, and nothing about the inside of our network.
 */

/** No connection was made, and nothing was sent. */
export class ConnectError extends Data.TaggedError("ConnectError")<{
  readonly errorCode: AttemptErrorCode
  readonly cause: unknown
}> {}

const codes: Readonly<Record<string, AttemptErrorCode>> = {
  ECONNREFUSED: "connection_refused",
  ECONNRESET: "connection_reset",
  ECONNABORTED: "connection_reset",
  EPIPE: "connection_reset",
  ENOTFOUND: "dns_failure",
  EAI_AGAIN: "dns_failure",
  ETIMEDOUT: "timeout",
  EPROTO: "tls_failure",
  HPE_HEADER_OVERFLOW: "response_too_large",
  HPE_CHUNK_EXTENSIONS_OVERFLOW: "response_too_large"
}

const tlsCode = /^(ERR_SSL_|ERR_TLS_)/

/** The code for an error of an exchange, from Node's sockets, its HTTP client or TLS. */
export const attemptErrorCode = (error: unknown): AttemptErrorCode => {
  if (error instanceof ConnectError) return error.errorCode
  const code = errorCode(error)
  if (code === undefined) return "network_error"
  return codes[code] ?? (tlsCode.test(code) ? "tls_failure" : "network_error")
}

/** The code for the errors of all addresses that were tried: the first specific one. */
export const connectErrorCode = (errors: ReadonlyArray<unknown>): AttemptErrorCode =>
  errors.map(attemptErrorCode).find((code) => code !== "network_error") ?? "network_error"

/** Once TCP is connected, any error that is neither a reset nor a timeout is a refused certificate or protocol. */
export const handshakeErrorCode = (error: unknown): AttemptErrorCode => {
  const code = attemptErrorCode(error)
  return code === "network_error" ? "tls_failure" : code
}

/** A fault of the service itself, before the network: a defect, not the outcome of an attempt. */
export class TransportBug extends Data.TaggedError("TransportBug")<{ readonly cause: unknown }> {}
