import type { IncomingMessage, ServerResponse } from "node:http"
import { ServiceUnavailable } from "../platform/errors/Errors.ts"

/**
 * Bounds the memory of all request bodies together. Each body is bounded, and so is the number of connections, but a
 * thousand unfinished bodies of a megabyte are a gigabyte. If there is no room, the body that has been arriving for
 * longest is dropped and its request refused: slow senders, which hold memory, make room for fast ones.
 */

const MiB = 1024 * 1024

/**
 * How many bytes the bodies of callers with a valid credential may hold in a process, and those of everybody else:
 * neither group uses the other's memory. One client address has at most half of each.
 */
export const bodyLimits = { known: 96 * MiB, strangers: 32 * MiB } as const

/** A body was dropped to make room for others. Not logged for each request: they come by the thousand. */
export class BodyDropped extends ServiceUnavailable {
  constructor() {
    super({
      message: "Request bodies fill the memory available to them; try again, on a new connection.",
      retryAfter: "1 second"
    })
  }
}

class Room {
  held = 0
  /** The bodies that hold something and have not arrived completely, the oldest first: only these are dropped. */
  readonly arriving = new Set<BodyShare>()
  readonly limit: number

  constructor(limit: number) {
    this.limit = limit
  }
}

/** The budgets of one kind of caller: in total and per address. */
class Kind {
  readonly #all: Room
  readonly #byAddress = new Map<string, Room>()

  constructor(limit: number) {
    this.#all = new Room(limit)
  }

  /** The address's own budget comes first: if that is full, no other address loses a body. */
  roomsOf(address: string): ReadonlyArray<Room> {
    const own = this.#byAddress.get(address) ?? new Room(this.#all.limit / 2)
    this.#byAddress.set(address, own)
    return [own, this.#all]
  }

  tidy(address: string): void {
    const own = this.#byAddress.get(address)
    if (own?.held === 0 && own.arriving.size === 0) this.#byAddress.delete(address)
  }
}

interface Request {
  readonly response: ServerResponse
  /** The client's address, as limits count it. */
  readonly address: string
  /** Refuses the request with this error, as the last one of its connection. */
  readonly refuse: (error: BodyDropped) => void
}

const shares = new WeakMap<IncomingMessage, BodyShare>()

/** The share of a request's body; none if it has no body, or did not come through a server of ours. */
export const bodyShareOf = (message: IncomingMessage): BodyShare | undefined => shares.get(message)

export class BodyBudget {
  readonly known = new Kind(bodyLimits.known)
  readonly strangers = new Kind(bodyLimits.strangers)

  /** Registers a request's body; `readMessage` then uses its share. */
  admit(message: IncomingMessage, request: Request): void {
    shares.set(message, new BodyShare(this, request))
  }
}

/**
 * One body's share of the memory, from its first byte until its request is answered: the bytes are in use until then.
 */
export class BodyShare {
  #kind: Kind
  #rooms: ReadonlyArray<Room> = []
  #bytes = 0
  #onDrop = () => {}
  readonly #budget: BodyBudget
  readonly #request: Request

  constructor(budget: BodyBudget, request: Request) {
    this.#budget = budget
    this.#kind = budget.strangers
    this.#request = request
  }

  /** Records that the caller's credential is valid. Call it before the body is read. */
  recognize(): void {
    this.#kind = this.#budget.known
  }

  /** @param onDrop called if the body is dropped: its reader releases the bytes and refuses the request */
  begin(onDrop: () => void): void {
    this.#onDrop = onDrop
    this.#request.response.once("close", () => {
      this.release()
      this.#kind.tidy(this.#request.address)
    })
  }

  /**
   * Whether the body may hold this many bytes in total, at least one. Makes room by dropping the oldest bodies, at last
   * this one.
   */
  hold(bytes: number): boolean {
    if (this.#bytes === 0) this.#rooms = this.#kind.roomsOf(this.#request.address)
    const more = bytes - this.#bytes
    for (const room of this.#rooms) {
      while (room.held + more > room.limit) {
        const [oldest = this] = room.arriving
        oldest.#drop()
        if (oldest === this) return false
      }
    }
    for (const room of this.#rooms) {
      room.held += more
      room.arriving.add(this)
    }
    this.#bytes = bytes
    return true
  }

  /** Marks the body as complete: it can no longer be dropped. */
  complete(): void {
    for (const { arriving } of this.#rooms) arriving.delete(this)
  }

  /** Refuses the request of a body that was dropped. */
  refuse(): void {
    this.#request.refuse(new BodyDropped())
  }

  #drop(): void {
    this.release()
    this.#onDrop()
  }

  release(): void {
    this.complete()
    for (const room of this.#rooms) room.held -= this.#bytes
    this.#rooms = []
    this.#bytes = 0
  }
}
