/** One guarded connection to a consumer, from the look-up of its name to its close. */
import { connect as connectTcp, isIP, type Socket } from "node:net"
import { performance } from "node:perf_hooks"
import { connect as connectTls, type SecureContext } from "node:tls"
import { Cause, type Context, Effect, Exit, Option, Runtime } from "effect"
import { type AddressPolicy, isAddressAllowed } from "../../endpoints/AddressPolicy.ts"
import {
  type DestinationRefusal,
  type DestinationUnresolvable,
  DnsResolver,
  type ResolvedAddress,
  resolveDestination
} from "../../endpoints/DestinationUrl.ts"
import { bareHostname } from "../../kit/UrlServer.ts"
import { Connecting } from "./Connecting.ts"
import { Expiring } from "./Deadlines.ts"
import { ConnectError, connectErrorCode, handshakeErrorCode, TransportBug } from "./TransportError.ts"

export interface ConnectionSettings {
  readonly resolver: Context.Tag.Service<DnsResolver>
  /** The runtime in which the resolver runs. */
  readonly runtime: Runtime.Runtime<never>
  /** Which certificate authorities are trusted. */
  readonly secureContext: SecureContext
}

/** A consumer's scheme, host and port, with its idle connections. */
export interface Origin {
  readonly name: string
  /** The longest idle first. */
  readonly idle: Array<Connection>
}

/** The user of a connection. The methods must not throw. */
export interface ConnectionUser {
  /** The connection is established, and the request can be written. */
  readonly onReady: () => void
  /** Bytes arrived. They are overwritten after the call. */
  readonly onBytes: (bytes: Buffer) => void
  /** The other side sends no more. */
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
  readonly #settings: ConnectionSettings
  readonly #policy: AddressPolicy
  readonly #onUnused: () => void
  #socket: Socket | null = null
  #destroyed = false
  #connecting: Connecting | null = null
  #cancelLookup: Runtime.Cancel<unknown, unknown> | null = null
  #lookedUpAt = performance.now()

  /** Does nothing before `open`. `onUnused` is called if anything happens to it while idle: it can't be reused then. */
  constructor(
    origin: Origin,
    settings: ConnectionSettings,
    {
      onUnused,
      policy,
      user
    }: { readonly policy: AddressPolicy; readonly user: ConnectionUser; readonly onUnused: () => void }
  ) {
    super()
    this.origin = origin
    this.#settings = settings
    this.#policy = policy
    this.user = user
    this.#onUnused = onUnused
  }

  /** Milliseconds since its name was looked up. */
  get ageMillis(): number {
    return performance.now() - this.#lookedUpAt
  }

  /** Whether everything written has left this process. */
  get isWritten(): boolean {
    return this.#socket?.writableLength === 0
  }

  /** Looks the name up and connects. */
  open(): void {
    const url = new URL(this.origin.name)
    this.#lookedUpAt = performance.now()
    let isLookedUp = false
    const cancel = Runtime.runCallback(this.#settings.runtime)(
      resolveDestination(url.hostname, this.#policy).pipe(Effect.provideService(DnsResolver, this.#settings.resolver)),
      {
        onExit: (exit) => {
          isLookedUp = true
          this.#cancelLookup = null
          if (this.#destroyed) return
          if (Exit.isSuccess(exit)) this.#connect(url, exit.value)
          else this.user?.onBroken(resolutionError(exit.cause))
        }
      }
    )
    // An IP address resolves synchronously
    if (!isLookedUp) this.#cancelLookup = cancel
  }

  /** Writes a request: its head, and its body unless that is part of `head`. */
  write(head: string, body: Uint8Array | null): void {
    const socket = this.#socket
    if (socket === null) return
    if (body === null) {
      socket.write(head)
      return
    }
    socket.cork()
    socket.write(head)
    socket.write(body)
    socket.uncork()
  }

  /** Ends the look-up, the connecting or the exchange in progress, and closes. Its user receives no more calls. */
  destroy(): void {
    this.user = null
    this.#destroyed = true
    this.#cancelLookup?.()
    this.#connecting?.cancel()
    this.#socket?.destroy()
  }

  /** Called when it has been idle for too long. */
  expire(): void {
    this.#onUnused()
  }

  #connect(url: URL, addresses: ReadonlyArray<ResolvedAddress>): void {
    const secure = url.protocol === "https:"
    const port = Number(url.port === "" ? (secure ? 443 : 80) : url.port)
    const onread = { buffer: readBuffer, callback: this.#onRead }
    this.#connecting = new Connecting(
      addresses,
      ({ address }) => {
        const tcp = { host: address, port, noDelay: true, onread }
        return secure ? connectTls({ ...tcp, ...tlsOptions(url, this.#settings.secureContext) }) : connectTcp(tcp)
      },
      (socket) => {
        this.#connecting = null
        this.#socket = socket
        const refusal = this.#refusalOf(socket.remoteAddress)
        if (refusal !== null) this.#fail(refusal)
        else if (secure) this.#handshake(socket)
        else this.#ready(socket)
      },
      (errors) => this.#fail(new ConnectError({ errorCode: connectErrorCode(errors), cause: errors }))
    )
  }

  /** Checks the address before the first byte: nothing is sent to one that is not allowed. */
  #refusalOf(remoteAddress: string | undefined): ConnectError | null {
    if (remoteAddress === undefined) {
      return new ConnectError({ errorCode: "connection_reset", cause: "closed as soon as it was connected" })
    }
    if (isAddressAllowed(remoteAddress, this.#policy)) return null
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
    if (this.user === null) this.#onUnused()
    else this.user.onBytes(Buffer.from(buffer.buffer, buffer.byteOffset, count))
    return true
  }

  #ended(): void {
    if (this.user !== null) this.user.onEnd()
    else if (!this.#destroyed) this.#onUnused()
  }

  #broken(error: Error): void {
    if (this.user !== null) this.user.onBroken(error)
    else if (!this.#destroyed) this.#onUnused()
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
