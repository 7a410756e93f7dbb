/** Connects to a name that may have several addresses. */
import type { Socket } from "node:net"
import type { ResolvedAddress } from "../../endpoints/DestinationUrl.ts"

/** How long to wait for one address before also trying the next, in milliseconds. */
const nextAddressAfterMillis = 500

/** The most addresses of a name that are tried: strangers control how many there are. */
const maxAddresses = 16

/**
 * Connects to whichever address answers first (RFC 8305): the next one is tried when one has failed, or has been silent
 * for a while; the silent one continues in parallel. So a dead address does not hold up the others, and a slow one is
 * not given up for a dead one. The caller must limit the total time.
 */
export class Connecting {
  readonly #connect: (address: ResolvedAddress) => Socket
  readonly #onConnected: (socket: Socket) => void
  readonly #onFailed: (errors: ReadonlyArray<unknown>) => void
  readonly #untried: Array<ResolvedAddress>
  readonly #tried = new Set<Socket>()
  readonly #errors: Array<unknown> = []
  #timer: NodeJS.Timeout | undefined

  /**
   * One of the two last functions is called once, unless it is cancelled before. `onConnected` is called before any other
   * listener, such as the one by which TLS sends its first byte.
   */
  constructor(
    addresses: ReadonlyArray<ResolvedAddress>,
    connect: (address: ResolvedAddress) => Socket,
    onConnected: (socket: Socket) => void,
    onFailed: (errors: ReadonlyArray<unknown>) => void
  ) {
    this.#connect = connect
    this.#onConnected = onConnected
    this.#onFailed = onFailed
    this.#untried = inTurns(addresses)
    this.#tryNext()
  }

  cancel(): void {
    clearTimeout(this.#timer)
    for (const socket of this.#tried) socket.destroy()
    this.#tried.clear()
  }

  #tryNext(): void {
    clearTimeout(this.#timer)
    const address = this.#untried.shift()
    if (address === undefined) return
    const socket = this.#connect(address)
    this.#tried.add(socket)
    socket.on("error", (error) => this.#failed(socket, error))
    socket.prependOnceListener("connect", () => {
      this.#tried.delete(socket)
      this.cancel()
      this.#onConnected(socket)
    })
    if (this.#untried.length > 0) this.#timer = setTimeout(() => this.#tryNext(), nextAddressAfterMillis)
  }

  #failed(socket: Socket, error: unknown): void {
    // Ignore sockets that were cancelled or have connected
    if (!this.#tried.delete(socket)) return
    this.#errors.push(error)
    if (this.#untried.length > 0) this.#tryNext()
    else if (this.#tried.size === 0) this.#onFailed(this.#errors)
  }
}

/** Alternates the address families, beginning with the first address's: all of one family may be unreachable. */
const inTurns = (addresses: ReadonlyArray<ResolvedAddress>): Array<ResolvedAddress> => {
  const first = addresses.filter(({ family }) => family === addresses[0]?.family)
  const second = addresses.filter(({ family }) => family !== addresses[0]?.family)
  return addresses
    .flatMap((_, index) => [...first.slice(index, index + 1), ...second.slice(index, index + 1)])
    .slice(0, maxAddresses)
}
