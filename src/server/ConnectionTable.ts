import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { isTrustedProxy, networkOf } from "../platform/kit/ClientAddress.ts"
import type { TrustedProxies } from "../platform/settings/Forms.ts"

/** A request and where its answer goes. */
export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** A connection with its requests: one is being answered, the others wait. */
export interface Connection {
  readonly socket: Socket
  /** Undefined for a trusted proxy's connection. */
  readonly owner: string | undefined
  current: Exchange | undefined
  waiting: Array<Exchange>
  /** When its current answer was first seen to have begun; 0 before. */
  answeringSince: number
  ending: boolean
  /** When it is closed, even with a request under way. */
  endsAt: number
}

/** Whether an answer is complete and handed to the operating system. */
export const isOver = ({ response }: Exchange): boolean => response.writableFinished || response.destroyed

/** Whether no request is being answered on a connection. */
export const isIdle = ({ current }: Connection): boolean => current === undefined || isOver(current)

/** The owner of a connection: an address, or a whole IPv6 network; none if it is a trusted proxy's. */
const ownerOf = ({ remoteAddress }: Socket, proxies: TrustedProxies): string | undefined =>
  remoteAddress === undefined || isTrustedProxy(remoteAddress, proxies) ? undefined : networkOf(remoteAddress)

/** The open connections of a server, oldest first: at most `limit`, and at most half of them of one owner. */
export class ConnectionTable {
  private readonly connections = new Map<Socket, Connection>()
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

  get(socket: Socket): Connection | undefined {
    return this.connections.get(socket)
  }

  values(): IterableIterator<Connection> {
    return this.connections.values()
  }

  /** The connections with a request under way. */
  busy(): ReadonlyArray<Connection> {
    return [...this.connections.values()].filter((connection) => !isIdle(connection))
  }

  /** Adds a connection until it closes; closes the oldest idle one if necessary; undefined if there is no room. */
  add(socket: Socket): Connection | undefined {
    const owner = ownerOf(socket, this.trustedProxies)
    if (!this.hasRoom(owner)) return undefined
    const connection: Connection = {
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

  private forget(connection: Connection): void {
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
  private closeIdle(isMeant: (connection: Connection) => boolean): boolean {
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
