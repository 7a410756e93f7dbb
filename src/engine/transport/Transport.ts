import type { BlockList } from "node:net"
import { createSecureContext } from "node:tls"
import { Context, Duration, Effect, Either, Layer } from "effect"
import { BoundedMap } from "../../platform/kit/Concurrency.ts"
import type { AttemptErrorCode, AttemptOutcome } from "../attempts/Outcome.ts"
import { Connections, Deadlines, type Origin, TransportBug } from "./Connections.ts"
import {
  type AddressPolicy,
  addressPolicyFor,
  type DestinationOptions,
  DnsResolver,
  parseDestination
} from "./DestinationUrl.ts"
import { Exchange } from "./Exchange.ts"

/**
 * The guarded transport: one HTTP request to an address that a customer chose (contract 5.2, 9.8, 9.9).
 *
 * Guarantees, whatever the other side does: requests go only to a checked address; each attempt is one request on the
 * wire, or two if the first crossed with the close of a kept-alive connection; redirects are not followed; the whole
 * exchange ends within one deadline; only a bounded part of the answer is read, and none of it is kept.
 */

export interface TransportRequest extends DestinationOptions {
  /** The destination, in the form of `parseDestination`. */
  readonly url: string
  /** The exact text that was signed, sent as UTF-8. */
  readonly body: string
  /** Sent as given; `host`, `connection` and `content-length` are added. */
  readonly headers: Readonly<Record<string, string>>
}

/** The transport's bounds; each has a default. */
export interface TransportOptions {
  /** How long an exchange may take in total: look-up, connecting, sending, the whole answer. Default 10 seconds. */
  readonly timeout?: Duration.DurationInput
  /**
   * How much later than its timeout an exchange may end if hundreds would end at once, such as after a burst of
   * attempts to endpoints that hang: ending them all at once would hold up other attempts. Default 0.
   */
  readonly timeoutSpread?: Duration.DurationInput
  /** How much of an answer's body is read before the connection is dropped. Default 64 KiB. */
  readonly maxResponseBytes?: number
  /** How many connections stay open for reuse, per origin; this does not limit attempts in flight. Default 8. */
  readonly idleConnectionsPerOrigin?: number
  /** How many connections stay open for reuse, for all origins together. Default 256. */
  readonly idleConnections?: number
  /** How long a connection stays open unused. Default 4 seconds, which is less than common servers allow. */
  readonly idleTimeout?: Duration.DurationInput
  /** How long after its DNS look-up a connection may be reused. Default 1 minute. */
  readonly maxConnectionAge?: Duration.DurationInput
  /** PEM certificates of the authorities to trust, instead of the usual ones. */
  readonly certificateAuthorities?: ReadonlyArray<string>
}

/** Sends attempts. */
export class Transport extends Context.Tag("connected-payments/engine/Transport")<
  Transport,
  {
    /**
     * Makes one attempt. Every failure is an outcome, and only an impossible request (such as one with a line break in a
     * header) is a defect. The deadline and `durationMs` follow the machine's monotonic clock. If the fiber is
     * interrupted, the exchange continues until it ends or the transport is closed.
     */
    readonly send: (request: TransportRequest) => Effect.Effect<AttemptOutcome>
  }
>() {
  /** Opens connections as needed and closes all of them with its scope. */
  static readonly layer = (options: TransportOptions = {}): Layer.Layer<Transport, never, DnsResolver> =>
    Layer.scoped(Transport, make(options))
}

const make = Effect.fnUntraced(function* (options: TransportOptions) {
  const { certificateAuthorities } = options
  const settings = {
    resolver: yield* DnsResolver,
    runtime: yield* Effect.runtime<never>(),
    secureContext: createSecureContext(certificateAuthorities === undefined ? {} : { ca: [...certificateAuthorities] }),
    idlePerOrigin: options.idleConnectionsPerOrigin ?? 8,
    idleInAll: options.idleConnections ?? 256,
    idleMillis: Duration.toMillis(options.idleTimeout ?? Duration.seconds(4)),
    maxAgeMillis: Duration.toMillis(options.maxConnectionAge ?? Duration.minutes(1))
  }
  const timeoutMillis = Duration.toMillis(options.timeout ?? Duration.seconds(10))
  const bounds = {
    maxResponseBytes: options.maxResponseBytes ?? 64 * 1024,
    deadlines: new Deadlines(timeoutMillis, Duration.toMillis(options.timeoutSpread ?? Duration.zero))
  }
  const routes = new Routes((policy) => new Connections(settings, policy))
  let closed = false
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      closed = true
      routes.discardAll()
    })
  )

  const send = (request: TransportRequest) =>
    Effect.async<AttemptOutcome>((resume) => {
      const route = closed ? null : routes.of(request)
      if (route === null) resume(Effect.succeed(notSent(closed ? "interrupted" : "destination_blocked")))
      else new Exchange(route.origin, bounds, requestText(route.start, request), resume).start()
    })

  return { send }
})

/** How a destination is reached. */
interface Route {
  readonly origin: Origin
  /** The beginning of the head of every request to it. */
  readonly start: string
}

/**
 * Cache of routes by destination and rules, so that each URL is checked only once; `null` for those that are refused.
 */
class Routes {
  readonly #make: (policy: AddressPolicy) => Connections
  /** By what distinguishes their policies. */
  readonly #connections = new Map<BlockList | boolean, Connections>()
  /** One for each environment with rules of its own. */
  readonly #known: Array<DestinationOptions & { readonly routes: BoundedMap<Route | null> }> = []

  constructor(make: (policy: AddressPolicy) => Connections) {
    this.#make = make
  }

  discardAll(): void {
    for (const connections of this.#connections.values()) connections.discardAll()
  }

  of(request: TransportRequest): Route | null {
    const { allowLocal, networks, url } = request
    let known = this.#known.find((one) => one.allowLocal === allowLocal && one.networks === networks)
    if (known === undefined) {
      known = { ...(networks === undefined ? {} : { networks }), allowLocal, routes: new BoundedMap() }
      this.#known.push(known)
    }
    return known.routes.getOrSet(url, () => this.#judge(request))
  }

  #judge(request: TransportRequest): Route | null {
    const url = Either.getOrNull(parseDestination(request.url, request))
    if (url === null) return null
    const policy = addressPolicyFor(url.hostname, request)
    const key = policy.networks ?? policy.allowLoopback
    const connections = this.#connections.get(key) ?? this.#make(policy)
    this.#connections.set(key, connections)
    return { origin: connections.originOf(url.origin), start: startOfHead(url) }
  }
}

const notSent = (errorCode: AttemptErrorCode): AttemptOutcome => ({
  httpStatus: null,
  errorCode,
  durationMs: 0,
  retryAfter: null
})

/** A header's name, but not of those that determine where a request ends and what happens to the connection. */
const headerName =
  /^(?!(?:connection|content-length|expect|host|keep-alive|proxy-connection|te|trailer|transfer-encoding|upgrade)$)[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/i
const headerValue = /^[\t\x20-\x7e]*$/
const requestTarget = /^\/[\x21-\x7e]*$/

/**
 * The common beginning of all POSTs to a destination. Throws a `TransportBug` if the host or path can't be part of a
 * request.
 */
const startOfHead = ({ host, pathname }: URL): string => {
  if (!requestTarget.test(pathname) || !headerValue.test(host)) {
    throw new TransportBug({ cause: "a destination that can't be put into a request" })
  }
  return `POST ${pathname} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n`
}

/**
 * A request as text. Throws a `TransportBug` if a header could change where the head or the body ends, such as one with
 * a line break in it.
 */
const requestText = (start: string, { body, headers }: TransportRequest): string => {
  let head = start
  for (const name in headers) {
    const value = headers[name] ?? ""
    if (!headerName.test(name) || !headerValue.test(value)) {
      throw new TransportBug({ cause: `an impossible header: ${name}` })
    }
    head += `${name}: ${value}\r\n`
  }
  return `${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}
