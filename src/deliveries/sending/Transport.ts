import type { BlockList } from "node:net"
/**
 * The guarded transport: one HTTP request to an address that a customer chose (contract 5.2, 9.8, 9.9).
 *
 * Guarantees, whatever the other side does: requests go only to a checked address; each attempt is one request on the
 * wire, or two if the first crossed with the close of a kept-alive connection; redirects are not followed; the whole
 * exchange ends within one deadline; only a bounded part of the answer is read, and none of it is kept.
 */
import { createSecureContext } from "node:tls"
import { Context, Duration, Effect, Either, Layer } from "effect"
import { type AddressPolicy, loopbackToo, publicAddressesOnly } from "../../endpoints/AddressPolicy.ts"
import {
  addressPolicyFor,
  type DestinationOptions,
  DnsResolver,
  parseDestination
} from "../../endpoints/DestinationUrl.ts"
import type { AttemptErrorCode, AttemptOutcome } from "../Attempt.ts"
import { Deadlines } from "./Deadlines.ts"
import { Exchange, type OutcomeReceiver } from "./Exchange.ts"
import { requestHead, startOfHead } from "./RequestHead.ts"
import type { Origin } from "./TransportConnection.ts"
import { Connections } from "./TransportConnections.ts"

export interface TransportRequest extends DestinationOptions {
  /** The destination, as `parseDestinationUrl` gave it. */
  readonly url: string
  /** The exact bytes that were signed; text is sent as UTF-8. */
  readonly body: string | Uint8Array
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
export class Transport extends Context.Tag("connected-payments/deliveries/Transport")<
  Transport,
  {
    /**
     * Makes one attempt. Never fails: every failure is an outcome. The deadline and `durationMs` follow the machine's
     * monotonic clock. Interruption closes the connection. Dies if the request itself is impossible (such as a header
     * with a line break).
     */
    readonly post: (request: TransportRequest) => Effect.Effect<AttemptOutcome>
    /**
     * `post` without a fiber, for many at once: the receiver is called exactly once, perhaps before this returns. The
     * returned function abandons the attempt: the connection closes, and the receiver is not called any more.
     */
    readonly send: (request: TransportRequest, receiver: OutcomeReceiver) => () => void
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

  const send = (request: TransportRequest, receiver: OutcomeReceiver): (() => void) => {
    const route = closed ? null : routes.of(request)
    if (route === null) {
      receiver.onOutcome(notSent(closed ? "interrupted" : "destination_blocked"))
      return () => {}
    }
    const { body, headers } = request
    let head: string
    try {
      head = requestHead(route.start, headers, Buffer.byteLength(body))
    } catch (defect) {
      receiver.onDefect(defect)
      return () => {}
    }
    const text = typeof body === "string"
    const exchange = text
      ? new Exchange(route, bounds, head + body, null, receiver)
      : new Exchange(route, bounds, head, body, receiver)
    exchange.start()
    return () => exchange.abandon()
  }

  const post = (request: TransportRequest) =>
    Effect.async<AttemptOutcome>((resume) => {
      const abandon = send(request, {
        onOutcome: (outcome) => resume(Effect.succeed(outcome)),
        onDefect: (defect) => resume(Effect.die(defect))
      })
      return Effect.sync(abandon)
    })

  return { post, send }
})

/** How a destination is reached. */
interface Route {
  readonly connections: Connections
  readonly origin: Origin
  /** The beginning of the head of every request to it. */
  readonly start: string
}

/** The most routes that are cached, per set of rules. */
const maxRoutes = 10_000

/** A set of rules for destinations, with its cached routes. */
interface Judgement {
  readonly allowLocal: boolean
  readonly networks: BlockList | undefined
  readonly known: Map<string, Route | null>
  readonly toNetworks: Connections | undefined
}

/**
 * Cache of routes by destination and rules, so that each URL is checked only once; `null` for those that are refused.
 */
class Routes {
  readonly #connectionsUnder: (policy: AddressPolicy) => Connections
  readonly #toPublic: Connections
  readonly #toLocal: Connections
  /** One for each environment with rules of its own. */
  readonly #judgements: Array<Judgement> = []

  constructor(connectionsUnder: (policy: AddressPolicy) => Connections) {
    this.#connectionsUnder = connectionsUnder
    this.#toPublic = connectionsUnder(publicAddressesOnly)
    this.#toLocal = connectionsUnder(loopbackToo)
  }

  discardAll(): void {
    this.#toPublic.discardAll()
    this.#toLocal.discardAll()
    for (const { toNetworks } of this.#judgements) toNetworks?.discardAll()
  }

  #judgementBy({ allowLocal, networks }: DestinationOptions): Judgement {
    const found = this.#judgements.find((one) => one.allowLocal === allowLocal && one.networks === networks)
    if (found !== undefined) return found
    const toNetworks = networks === undefined ? undefined : this.#connectionsUnder({ allowLoopback: false, networks })
    const made = { allowLocal, networks, known: new Map<string, Route | null>(), toNetworks }
    this.#judgements.push(made)
    return made
  }

  of(request: TransportRequest): Route | null {
    const judgement = this.#judgementBy(request)
    const { known } = judgement
    let route = known.get(request.url)
    if (route === undefined) {
      route = this.#judge(request, judgement)
      if (known.size >= maxRoutes) known.clear()
      known.set(request.url, route)
    }
    return route
  }

  #judge(request: TransportRequest, { toNetworks }: Judgement): Route | null {
    const url = Either.getOrNull(parseDestination(request.url, request))
    if (url === null) return null
    const policy = addressPolicyFor(url.hostname, request)
    const toPrivate = policy.networks === undefined ? undefined : toNetworks
    const connections = toPrivate ?? (policy.allowLoopback ? this.#toLocal : this.#toPublic)
    return { connections, origin: connections.originOf(url.origin), start: startOfHead(url) }
  }
}

const notSent = (errorCode: AttemptErrorCode): AttemptOutcome => ({
  httpStatus: null,
  errorCode,
  durationMs: 0,
  retryAfter: null
})
