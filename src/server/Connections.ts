import { type IncomingMessage, type RequestListener, type Server, type ServerResponse, STATUS_CODES } from "node:http"
import { isIP, type Socket } from "node:net"
import { performance } from "node:perf_hooks"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import { Duration, Effect, Option } from "effect"
import {
  type ApiError,
  errorBody,
  RequestTimeout,
  retrySeconds,
  ServiceUnavailable
} from "../platform/errors/Errors.ts"
import { errorLink } from "../platform/kit/ErrorLink.ts"
import { isEventStream, newRequestId } from "../platform/kit/Request.ts"
import type { TrustedProxies } from "../platform/settings/Forms.ts"
import { BodyBudget, bodyRefused, type UnreadableRequest } from "./Body.ts"
import { isToolServer, rpcError } from "./RpcError.ts"

const unmapped = (address: string): string => address.replace(/^::ffff:(?=[\d.]+$)/i, "")

const isTrusted = (address: string, proxies: TrustedProxies): boolean => {
  const family = isIP(address)
  return family !== 0 && proxies.check(address, family === 6 ? "ipv6" : "ipv4")
}

const isTrustedProxy = (address: string, proxies: TrustedProxies): boolean => isTrusted(unmapped(address), proxies)

/** One entry of the header, without the port that some proxies add: `203.0.113.9:4711`, `[2001:db8::9]:4711`. */
const forwardedAddress = (entry: string): string => {
  const [, v6, v4] = /^(?:\[([^\]]*)\]|([\d.]+))(?::\d{1,5})?$/.exec(entry) ?? []
  return unmapped(v6 ?? v4 ?? entry)
}

/**
 * The client's address: the connection's, or, behind trusted proxies, the last one in `X-Forwarded-For` that is not a
 * trusted proxy's. The header of an untrusted sender is ignored.
 */
export const clientAddress = (
  proxies: TrustedProxies
): Effect.Effect<string, never, HttpServerRequest.HttpServerRequest> =>
  Effect.map(HttpServerRequest.HttpServerRequest, (request) => addressOf(request, proxies))

export interface Sent {
  readonly remoteAddress: Option.Option<string>
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
}

/** The value of a header, by its name in lower case; undefined if it is absent or a list. */
export const headerOf = ({ headers }: Pick<Sent, "headers">, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === "string" ? value : undefined
}

const connectionOf = ({ remoteAddress }: Sent): string => unmapped(Option.getOrElse(remoteAddress, () => "unknown"))

const addressOf = (request: Sent, proxies: TrustedProxies): string =>
  addressBehind(proxies, connectionOf(request), headerOf(request, "x-forwarded-for"))

/**
 * The client's address behind a connection.
 *
 * @param connection the address of the connection
 * @param header the request's `X-Forwarded-For`
 */
const addressBehind = (proxies: TrustedProxies, connection: string, header: string | undefined): string => {
  let address = unmapped(connection)
  const forwarded = (header ?? "").split(",").map((part) => forwardedAddress(part.trim()))
  while (isTrusted(address, proxies)) {
    const next = forwarded.pop()
    if (next === undefined || isIP(next) === 0) {
      break
    }
    address = next
  }
  return address
}

/** Whether a request comes from one of these addresses: the client's, or that of the proxy that connected for it. */
export const comesFrom = (request: Sent, addresses: TrustedProxies, proxies: TrustedProxies): boolean =>
  isTrusted(connectionOf(request), addresses) || isTrusted(addressOf(request, proxies), addresses)

/**
 * The key by which limits count a client: its IPv4 address, or the /64 network of its IPv6 address. A subscriber
 * usually has the whole /64, and could use a new address for every request.
 */
export const clientNetwork = (
  proxies: TrustedProxies
): Effect.Effect<string, never, HttpServerRequest.HttpServerRequest> => Effect.map(clientAddress(proxies), networkOf)

const networkOfSender = (request: Sent, proxies: TrustedProxies): string => networkOf(addressOf(request, proxies))

const networkOf = (mapped: string): string => {
  const address = unmapped(mapped)
  if (isIP(address) !== 6) {
    return address
  }
  const [head = "", tail] = (address.split("%", 1)[0] ?? "").split("::")
  const parts = (text: string) => text.split(":").filter((part) => part !== "")
  const known = parts(head)
  // The zeros that `::` replaces; an IPv4 address at the end takes two groups
  const trailing = tail === undefined ? [] : parts(tail)
  const places = trailing.length + (trailing.at(-1)?.includes(".") === true ? 1 : 0)
  const zeros = tail === undefined ? [] : Array.from({ length: 8 - known.length - places }, () => "0")
  const network = [...known, ...zeros, ...trailing].slice(0, 4).map((part) => Number.parseInt(part, 16).toString(16))
  return `${network.join(":")}::/64`
}

interface HttpCall {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** A connection with its requests: one is being answered, the others wait. */
interface ClientConnection {
  readonly socket: Socket
  /** Undefined for a trusted proxy's connection. */
  readonly owner: string | undefined
  current: HttpCall | undefined
  waiting: Array<HttpCall>
  /** When the current answer was first seen to have begun; 0 before. */
  answeringSince: number
  ending: boolean
  /** When the connection is closed, even with a request under way. */
  endsAt: number
}

/** Whether an answer is complete and handed to the operating system. */
export const isOver = ({ response }: HttpCall): boolean => response.writableFinished || response.destroyed

/** Whether no request is being answered on a connection. */
export const isIdle = ({ current }: ClientConnection): boolean => current === undefined || isOver(current)

/** The owner of a connection: an address, or a whole IPv6 network; none if it is a trusted proxy's. */
const ownerOf = ({ remoteAddress }: Socket, proxies: TrustedProxies): string | undefined =>
  remoteAddress === undefined || isTrustedProxy(remoteAddress, proxies) ? undefined : networkOf(remoteAddress)

/** The open connections of a server, oldest first: at most `limit`, and at most half of them of one owner. */
export class ConnectionTable {
  private readonly connections = new Map<Socket, ClientConnection>()
  private readonly owned = new Map<string, number>()
  private readonly limit: number
  private readonly share: number
  private readonly trustedProxies: TrustedProxies

  constructor(limit: number, trustedProxies: TrustedProxies) {
    this.limit = limit
    this.share = Math.ceil(limit / 2)
    this.trustedProxies = trustedProxies
  }

  get size(): number {
    return this.connections.size
  }

  get(socket: Socket): ClientConnection | undefined {
    return this.connections.get(socket)
  }

  values(): IterableIterator<ClientConnection> {
    return this.connections.values()
  }

  busy(): ReadonlyArray<ClientConnection> {
    return [...this.connections.values()].filter((connection) => !isIdle(connection))
  }

  /** Adds a connection until it closes; closes the oldest idle one if necessary; undefined if there is no room. */
  add(socket: Socket): ClientConnection | undefined {
    const owner = ownerOf(socket, this.trustedProxies)
    if (!this.hasRoom(owner)) return undefined
    const connection: ClientConnection = {
      socket,
      owner,
      current: undefined,
      waiting: [],
      answeringSince: 0,
      ending: false,
      endsAt: Number.POSITIVE_INFINITY
    }
    this.connections.set(socket, connection)
    if (owner !== undefined) this.owned.set(owner, (this.owned.get(owner) ?? 0) + 1)
    socket.on("close", () => this.forget(connection))
    return connection
  }

  private forget(connection: ClientConnection): void {
    connection.waiting = []
    if (!this.connections.delete(connection.socket) || connection.owner === undefined) return
    const left = (this.owned.get(connection.owner) ?? 1) - 1
    if (left > 0) this.owned.set(connection.owner, left)
    else this.owned.delete(connection.owner)
  }

  private hasRoom(owner: string | undefined): boolean {
    const isOverShare = owner !== undefined && (this.owned.get(owner) ?? 0) >= this.share
    return (
      (!isOverShare || this.closeIdle((connection) => connection.owner === owner)) &&
      (this.connections.size < this.limit || this.closeIdle(() => true))
    )
  }

  /** Makes room: closes the oldest connection without a request under way. */
  private closeIdle(isMeant: (connection: ClientConnection) => boolean): boolean {
    for (const connection of this.connections.values()) {
      if (isIdle(connection) && isMeant(connection)) {
        this.forget(connection)
        connection.socket.destroy()
        return true
      }
    }
    return false
  }
}

/**
 * Bounds on what one client can make the server hold: connections, requests on each, and how long an answer is kept for
 * a client that does not read it.
 */

export interface ConnectionBounds {
  /** Open connections; one address has at most half of them, unless it is a trusted proxy's. */
  readonly connectionLimit: number
  /** How long sending an answer may take, from its first byte to its last. */
  readonly answerTimeout: Duration.Duration
  readonly trustedProxies: TrustedProxies
}

/** How long nothing may be sent or read before the client is considered gone. */
export const stallTimeout = Duration.seconds(20)

/** How many requests may wait behind the current one before the server stops reading their connection. */
const maxWaiting = 16

/** A single read can still yield more requests: at this number, the connection ends after the last one's answer. */
const maxQueued = 256

const sweepInterval = Duration.seconds(1)

/** How long a client has to read the refusal of a request that it has not sent completely. */
const refusalTimeout = Duration.seconds(10)

const drainInterval = 20

/** How long a client has to read the refusal of a request that a drain did not wait for, in milliseconds. */
const lastWords = 200

/** A refusal in the API's documented form, or the tool server's, for requests that no handler answers. */
export const refusalTo = (error: ApiError, target: string) => {
  const requestId = newRequestId()
  const body = JSON.stringify((isToolServer(target) ? rpcError : errorBody)(error, requestId))
  return {
    body,
    headers: {
      "content-type": "application/json",
      "content-length": String(Buffer.byteLength(body)),
      "request-id": requestId,
      link: errorLink(error),
      ...(error.retryAfter === null ? {} : { "retry-after": String(retrySeconds(error.retryAfter)) })
    }
  }
}

/** A refusal as the last answer of a connection. */
const refusalOf = (error: UnreadableRequest, target: string) => {
  const { body, headers } = refusalTo(error, target)
  return { body, headers: { ...headers, connection: "close" } }
}

/** Answers a request that no handler sees; closes the connection if the client has left. */
const writeRefusal = (socket: Socket, error: UnreadableRequest | null, target: string): void => {
  if (!socket.writable || error === null) {
    socket.destroy()
    return
  }
  const { body, headers } = refusalOf(error, target)
  socket.end(
    [
      `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status] ?? "Refused"}`,
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
      "",
      body
    ].join("\r\n")
  )
}

/** The answer to requests that arrive too late, or take too long, while the process is stopping. */
const stopping = () =>
  new ServiceUnavailable({
    message: "This process is stopping; try again, on a new connection.",
    retryAfter: "1 second"
  })

export interface DrainOptions {
  /** How long connections without a request are still served if one arrives. */
  readonly grace: Duration.Duration
  readonly timeout: Duration.Duration
}

export interface ClientConnections {
  /** Serves requests one at a time per connection, in their order. */
  readonly serve: (listener: RequestListener) => RequestListener
  /**
   * Refuses a request that could not be read, after every request before it is answered, and ends the connection.
   *
   * @param error null if the client left in the middle of a request
   * @param target the target of the request line, if known, otherwise empty
   */
  readonly refuse: (socket: Socket, error: UnreadableRequest | null, target: string) => void
  readonly open: () => number
  readonly underWay: () => number
  /**
   * Ends every connection, without a reset if possible: idle ones when `grace` ends, the others with their answer,
   * which carries `connection: close`. Requests not answered in time are refused with 503. Resolves when no connection
   * is left.
   *
   * @returns how many requests were refused or cut off
   */
  readonly drain: (options: DrainOptions) => Promise<number>
}

const open = (table: ConnectionTable, socket: Socket, onFull: () => void): void => {
  const connection = table.add(socket)
  if (connection === undefined) {
    socket.destroy()
    onFull()
    return
  }
  // The server resumes reading after each answer
  socket.on("resume", () => {
    if (connection.waiting.length >= maxWaiting) socket.pause()
  })
}

const endSoon = (connection: ClientConnection): void => {
  connection.ending = true
  connection.endsAt = performance.now() + Duration.toMillis(refusalTimeout)
}

/** Refuses the current request, which has not arrived completely. */
const refuseCurrent = (
  connection: ClientConnection,
  { request, response }: HttpCall,
  error: UnreadableRequest | null
): void => {
  endSoon(connection)
  if (response.headersSent || error === null) {
    connection.socket.destroy()
    return
  }
  response.setHeader("connection", "close")
  // If something is reading the body, its handler answers; otherwise this does
  if (!request.emit(bodyRefused, error)) writeRefusal(connection.socket, error, request.url ?? "")
}

/** Refuses an unreadable request with the last answer of its connection; see `ClientConnections.refuse`. */
const refuseLast = (connection: ClientConnection, error: UnreadableRequest | null, target: string): void => {
  if (connection.ending) return
  const { current, socket } = connection
  if (current === undefined || isOver(current)) {
    endSoon(connection)
    writeRefusal(socket, error, target)
  } else if (!current.request.complete) {
    refuseCurrent(connection, current, error)
  } else {
    connection.ending = true
    // The last waiting request may be the one that could not be read
    connection.waiting = connection.waiting.filter(({ request }) => request.complete)
    const last = connection.waiting.at(-1) ?? current
    last.response.once("close", () => {
      endSoon(connection)
      writeRefusal(socket, error, target)
    })
  }
}

const refuse = (table: ConnectionTable, socket: Socket, error: UnreadableRequest | null, target: string): void => {
  const connection = table.get(socket)
  if (connection === undefined || (error instanceof RequestTimeout && socket.bytesRead === 0)) {
    // Opened in advance and never used: there is no request to answer
    socket.destroy()
    return
  }
  refuseLast(connection, error, target)
}

/** Handles a stalled connection. One that is waiting for our answer is left alone. */
const stalled = (table: ConnectionTable, socket: Socket): void => {
  const connection = table.get(socket)
  const current = connection?.current
  if (connection === undefined || current === undefined || isOver(current) || current.response.headersSent) {
    socket.destroy()
  } else if (!current.request.complete && !connection.ending) {
    refuseCurrent(connection, current, new RequestTimeout())
  }
}

/**
 * Whether an answer is an event stream whose reader has read everything so far. Such an answer has no end, so its
 * timeout counts from when the reader was last up to date.
 */
const isUpToDate = ({ request, response }: HttpCall): boolean =>
  response.writableLength === 0 && isEventStream(request.url ?? "")

/** Closes the connections past their deadline, and those whose answer takes too long. */
const sweep = (table: ConnectionTable, answerTimeout: Duration.Duration): void => {
  const now = performance.now()
  for (const connection of table.values()) {
    const { current, socket } = connection
    if (now >= connection.endsAt) {
      socket.destroy()
    } else if (current?.response.headersSent === true && !isOver(current)) {
      if (connection.answeringSince === 0 || isUpToDate(current)) connection.answeringSince = now
      else if (now - connection.answeringSince >= Duration.toMillis(answerTimeout)) socket.destroy()
    }
  }
}

const begin = (connection: ClientConnection, exchange: HttpCall, listener: RequestListener): void => {
  connection.current = exchange
  connection.answeringSince = 0
  listener(exchange.request, exchange.response)
}

const beginNext = (connection: ClientConnection, listener: RequestListener): void => {
  // After the last answer of a connection, no request can be answered
  const next = connection.socket.writable ? connection.waiting.shift() : undefined
  if (next === undefined) return
  if (connection.waiting.length > 0) next.response.once("close", () => beginNext(connection, listener))
  if (connection.waiting.length === maxWaiting - 1) connection.socket.resume()
  begin(connection, next, listener)
}

const wait = (connection: ClientConnection, current: HttpCall, exchange: HttpCall, listener: RequestListener): void => {
  const waiting = connection.waiting.push(exchange)
  if (waiting === 1) current.response.once("close", () => beginNext(connection, listener))
  if (waiting >= maxWaiting) connection.socket.pause()
  if (waiting >= maxQueued) {
    connection.ending = true
    exchange.response.setHeader("connection", "close")
  }
}

interface Drain {
  /** Whether each answer is the last of its connection. */
  ending: boolean
  late: boolean
}

interface Serving {
  readonly table: ConnectionTable
  readonly drain: Drain
  readonly bodies: BodyBudget
  readonly trustedProxies: TrustedProxies
  readonly onNoRoom: () => void
}

const admitBody = (
  { bodies, onNoRoom, trustedProxies }: Serving,
  connection: ClientConnection,
  exchange: HttpCall
): void => {
  const { request, response } = exchange
  const { headers, socket } = request
  if (headers["content-length"] === undefined && headers["transfer-encoding"] === undefined) return
  bodies.admit(request, {
    response,
    address: networkOfSender({ headers, remoteAddress: Option.fromNullable(socket.remoteAddress) }, trustedProxies),
    refuse: (error) => {
      onNoRoom()
      refuseCurrent(connection, exchange, error)
    }
  })
}

const serve =
  (serving: Serving, listener: RequestListener): RequestListener =>
  (request, response) => {
    const { drain, table } = serving
    const connection = table.get(request.socket)
    if (connection === undefined || connection.ending) return
    if (drain.late) {
      const { body, headers } = refusalOf(stopping(), request.url ?? "")
      response.writeHead(503, headers).end(body)
      return
    }
    if (drain.ending) response.setHeader("connection", "close")
    // Connections are never upgraded, but the bytes after an upgrade request may not be another request
    if (request.headers.upgrade !== undefined) response.setHeader("connection", "close")
    const { current, waiting } = connection
    const exchange = { request, response }
    admitBody(serving, connection, exchange)
    if (current === undefined || (waiting.length === 0 && isOver(current))) {
      begin(connection, exchange, listener)
    } else {
      wait(connection, current, exchange, listener)
    }
  }

const announceEnd = (table: ConnectionTable): void => {
  for (const { current, waiting } of table.busy()) {
    // Waiting requests are answered as well: the last one ends the connection
    const last = waiting.at(-1) ?? current
    if (last?.response.headersSent === false) last.response.setHeader("connection", "close")
  }
}

/** Refuses every unanswered request, and cuts answers that have begun; returns how many there were. */
const refuseAll = (table: ConnectionTable): number => {
  const left = table.busy()
  for (const connection of left) {
    if (connection.current !== undefined) refuseCurrent(connection, connection.current, stopping())
  }
  return left.length
}

const drainAll = (table: ConnectionTable, drain: Drain, { grace, timeout }: DrainOptions): Promise<number> =>
  new Promise((resolve) => {
    drain.ending = true
    announceEnd(table)
    const begunAt = performance.now()
    const [graceMillis, timeoutMillis] = [Duration.toMillis(grace), Duration.toMillis(timeout)]
    let refused: number | undefined
    const look = (): void => {
      const millis = performance.now() - begunAt
      if (millis >= graceMillis) {
        drain.late = true
        for (const connection of table.values()) {
          if (isIdle(connection) && !connection.ending) connection.socket.destroySoon()
        }
      }
      if (millis >= timeoutMillis) refused ??= refuseAll(table)
      if (millis >= timeoutMillis + lastWords) {
        for (const { socket } of table.values()) socket.destroy()
      }
      if (table.size > 0) return
      clearInterval(looking)
      resolve(refused ?? 0)
    }
    const looking = setInterval(look, drainInterval)
    look()
  })

/**
 * Bounds the connections of a server, from its first one on.
 *
 * @param onFull called for each connection refused because there were too many, and for each request whose body had no
 * room
 */
export const boundConnections = (
  server: Server,
  { answerTimeout, connectionLimit, trustedProxies }: ConnectionBounds,
  onFull: (refused: "connection" | "body") => void
): ClientConnections => {
  const table = new ConnectionTable(connectionLimit, trustedProxies)
  const drain: Drain = { ending: false, late: false }
  const onNoRoom = () => onFull("body")
  const serving: Serving = { table, drain, bodies: new BodyBudget(), trustedProxies, onNoRoom }
  server.on("connection", (socket) => open(table, socket, () => onFull("connection")))
  server.setTimeout(Duration.toMillis(stallTimeout), (socket) => stalled(table, socket))
  const sweeping = setInterval(() => sweep(table, answerTimeout), Duration.toMillis(sweepInterval)).unref()
  server.on("close", () => clearInterval(sweeping))
  return {
    serve: (listener) => serve(serving, listener),
    refuse: (socket, error, target) => refuse(table, socket, error, target),
    open: () => table.size,
    underWay: () => table.busy().length,
    drain: (options) => drainAll(table, drain, options)
  }
}
