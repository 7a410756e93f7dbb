import { connect, createServer, type Socket } from "node:net"
import { Effect, type Scope } from "effect"
import { listening } from "../../harness/Listening.ts"

/**
 * A proxy in front of PostgreSQL that reads along: which statements a client sends, with which values, and in how many
 * round trips. What the server answers passes unread.
 */

/** A statement as it was executed. */
export interface Executed {
  readonly text: string
  /** Null where the statement came without values, as the protocol's simple query. */
  readonly values: ReadonlyArray<string | null> | null
}

/** What was seen since the last `take`. */
export interface Seen {
  readonly statements: ReadonlyArray<Executed>
  /** How often the client waited for the server. */
  readonly roundTrips: number
}

/** A proxy that listens. */
export interface StatementProxy {
  /** The database's URL through the proxy. */
  readonly url: string
  /** What was seen since it was last asked. */
  readonly take: () => Seen
}

/** Reads the parts of a message. */
class Reader {
  private readonly bytes: Buffer
  private at = 0

  constructor(bytes: Buffer) {
    this.bytes = bytes
  }

  text(): string {
    const end = this.bytes.indexOf(0, this.at)
    const text = this.bytes.toString("utf8", this.at, end)
    this.at = end + 1
    return text
  }

  int16(): number {
    this.at += 2
    return this.bytes.readInt16BE(this.at - 2)
  }

  value(): string | null {
    const length = this.bytes.readInt32BE(this.at)
    this.at += 4
    if (length < 0) return null
    this.at += length
    return this.bytes.toString("utf8", this.at - length, this.at)
  }
}

/** What a client says on one connection. */
class Conversation {
  private buffered: Buffer = Buffer.alloc(0)
  private started = false
  private readonly texts = new Map<string, string>()
  private bound: Executed = { text: "", values: [] }
  private readonly executed: (statement: Executed) => void
  private readonly waited: () => void

  constructor(executed: (statement: Executed) => void, waited: () => void) {
    this.executed = executed
    this.waited = waited
  }

  read(chunk: Buffer): void {
    this.buffered = this.buffered.length === 0 ? chunk : Buffer.concat([this.buffered, chunk])
    for (;;) {
      // The first message has no type
      const head = this.started ? 1 : 0
      if (this.buffered.length < head + 4) return
      const end = head + this.buffered.readInt32BE(head)
      if (this.buffered.length < end) return
      if (this.started) this.message(this.buffered.toString("latin1", 0, 1), this.buffered.subarray(5, end))
      this.started = true
      this.buffered = this.buffered.subarray(end)
    }
  }

  private message(type: string, body: Buffer): void {
    const reader = new Reader(body)
    if (type === "P") this.texts.set(reader.text(), reader.text())
    else if (type === "B") this.bind(reader)
    else if (type === "E") this.executed(this.bound)
    else if (type === "S") this.waited()
    else if (type === "Q") {
      this.executed({ text: reader.text(), values: null })
      this.waited()
    }
  }

  private bind(reader: Reader): void {
    reader.text()
    const text = this.texts.get(reader.text()) ?? ""
    const formats = reader.int16()
    for (let n = 0; n < formats; n++) reader.int16()
    this.bound = { text, values: Array.from({ length: reader.int16() }, () => reader.value()) }
  }
}

/** Starts a proxy for this database on a free port; it ends with the scope. */
export const startStatementProxy = (databaseUrl: string): Effect.Effect<StatementProxy, never, Scope.Scope> => {
  const target = new URL(databaseUrl)
  let statements: Array<Executed> = []
  let roundTrips = 0
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const database = connect(Number(target.port), target.hostname)
    const conversation = new Conversation(
      (statement) => statements.push(statement),
      () => {
        roundTrips += 1
      }
    )
    client.setNoDelay().on("data", (chunk) => conversation.read(chunk))
    database.setNoDelay()
    client.pipe(database)
    database.pipe(client)
    for (const [one, other] of [
      [client, database],
      [database, client]
    ] as const) {
      sockets.add(one)
      one.on("error", () => other.destroy()).on("close", () => other.destroy())
    }
  })
  return Effect.gen(function* () {
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        for (const socket of sockets) socket.destroy()
      })
    )
    const url = new URL(databaseUrl)
    url.host = `127.0.0.1:${yield* listening(server)}`
    const take = () => {
      const seen = { statements, roundTrips }
      statements = []
      roundTrips = 0
      return seen
    }
    return { url: url.href, take }
  })
}
