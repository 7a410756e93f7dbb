import { createHash } from "node:crypto"
import { performance } from "node:perf_hooks"
import { Predicate } from "effect"
import pg from "pg"
import { waitedEvent } from "../telemetry/ProcessMetrics.ts"
import { removeValues } from "../telemetry/ServerErrors.ts"

/** Statement texts are constant and few; the bound only guards against texts built by mistake. */
const maxStatementNames = 2000
const statementNames = new Map<string, string>()

const statementName = (text: string): string | undefined => {
  const known = statementNames.get(text)
  if (known !== undefined || statementNames.size >= maxStatementNames) {
    return known
  }
  const name = createHash("sha1").update(text).digest("base64url")
  statementNames.set(text, name)
  return name
}

type QueryCallback = (error: unknown, result: unknown) => void

export const isCallback = (value: unknown): value is QueryCallback => typeof value === "function"

/**
 * Takes over a client's query timeout in milliseconds, 0 if there is none; from then on, `pg` does not enforce it. `pg`
 * would create a timer and a callback for each query, and assign the callback to a property. V8 puts such functions
 * into the old space, where each keeps its query with all rows until a full garbage collection.
 */
const takeOverBound = (client: pg.Client): number => {
  const parameters: unknown = Reflect.get(client, "connectionParameters")
  if (!Predicate.isRecord(parameters)) return 0
  const millis = Number(parameters["query_timeout"])
  parameters["query_timeout"] = 0
  return Number.isFinite(millis) ? millis : 0
}

/** The error of a silent server, with a code like Node's connection errors: logs show codes, but no messages. */
const silence = (millis: number) =>
  Object.assign(new Error(`The database has not answered for ${millis} ms`), { code: "ETIMEDOUT" })

/**
 * A client whose errors contain no row values, since they are logged and traced unchanged. It closes its connection if
 * the server leaves queries unanswered for `query_timeout`.
 */
export class DiscreetClient extends pg.Client {
  readonly #silenceMillis = takeOverBound(this)
  #unanswered = 0
  #answers = 0
  /** The time of the last answer, or of the first query after an idle period, by `performance.now()`. */
  #heardAt = 0
  /** When this connection was asked for, until its first statement. */
  #waitedSince: number | null = null
  #timer: NodeJS.Timeout | null = null
  #held: Promise<unknown> | null = null
  #onNextAnswer: ReadonlyArray<() => void> = []

  constructor(config?: string | pg.ClientConfig) {
    super(config)
    this.connection.prependListener("errorMessage", removeValues)
  }

  get process(): number {
    return Number(Reflect.get(this, "processID"))
  }

  /** Sequence number of the running statement on this connection; null if none is running. */
  get underWay(): number | null {
    return this.#unanswered === 0 ? null : this.#answers
  }

  onNextAnswer(callback: () => void): void {
    this.#onNextAnswer = [...this.#onNextAnswer, callback]
  }

  /** Counts the wait for this connection as part of its next statement, so that one deadline bounds both. */
  waitedSince(askedAt: number): void {
    if (this.#unanswered > 0) return
    this.#waitedSince = askedAt
    // It may be set for later than the new deadline
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }

  /** Starts no further statement until the returned function is called; new statements wait. */
  hold(): () => void {
    let release = () => {}
    const held = Promise.all([this.#held, new Promise<void>((resolve) => (release = resolve))])
    this.#held = held
    void held.then(() => {
      if (this.#held === held) this.#held = null
    })
    return release
  }

  /** Calls back once statements are no longer held, after the statements that were already waiting. */
  whenFree(callback: () => void): void {
    if (this.#held === null) callback()
    else void this.#held.then(() => this.whenFree(callback))
  }

  // `pg.Client#query` has a dozen overloads, with a callback and without
  override query: pg.Client["query"] = ((...args: ReadonlyArray<unknown>) =>
    this.#askWhenFree(args)) as pg.Client["query"]

  #askWhenFree(args: ReadonlyArray<unknown>): unknown {
    if (this.#held === null) return this.#ask(args)
    const asked = this.#held.then(() => this.#askWhenFree(args))
    const [first] = args
    // A cursor is its own result
    return Predicate.hasProperty(first, "submit") ? first : args.some(isCallback) ? undefined : asked
  }

  #ask(args: ReadonlyArray<unknown>): unknown {
    const own = args.map((one) => (isCallback(one) ? this.#noting(one) : one))
    const result: unknown = Reflect.apply(super.query, this, own)
    // A cursor has neither: its reader must enforce the timeout
    if (result instanceof Promise) result.then(this.#answered, this.#answered)
    else if (!args.some(isCallback)) return result
    this.#asked()
    return result
  }

  #noting(callback: QueryCallback): QueryCallback {
    return (error, result) => {
      this.#answered()
      callback(error, result)
    }
  }

  #asked(): void {
    if (this.#unanswered === 0) this.#heardAt = this.#waitedSince ?? performance.now()
    this.#unanswered += 1
    if (this.#timer === null && this.#silenceMillis > 0) {
      const waited = this.#waitedSince === null ? 0 : performance.now() - this.#waitedSince
      this.#lookAfter(Math.max(1, this.#silenceMillis - waited))
    }
    this.#waitedSince = null
  }

  readonly #answered = (): void => {
    this.#unanswered -= 1
    this.#answers += 1
    this.#heardAt = performance.now()
    if (this.#onNextAnswer.length === 0) return
    const callbacks = this.#onNextAnswer
    this.#onNextAnswer = []
    for (const callback of callbacks) callback()
  }

  #lookAfter(millis: number): void {
    // Timers run before pending input is read: after a pause of this process, an answer may already have arrived
    this.#timer = setTimeout(() => setImmediate(this.#look), millis).unref()
  }

  /** A server that left one query unanswered would leave the next one unanswered, too; a new connection may work. */
  readonly #look = (): void => {
    this.#timer = null
    if (this.#unanswered === 0) return
    const left = this.#heardAt + this.#silenceMillis - performance.now()
    if (left > 0) this.#lookAfter(left)
    else this.connection.stream.destroy(silence(this.#silenceMillis))
  }
}

/** Shorter waits for a connection don't count: each would need a timer. */
const countedMillis = 100

/** Makes the wait for one of a pool's connections count as part of the first statement: see `waitedSince`. */
export const countWaits = (pool: pg.Pool): void => {
  const { connect } = pool
  // `pg.Pool#connect` has an overload for promises, which no request uses
  pool.connect = ((...args: ReadonlyArray<unknown>) => {
    const [done] = args
    if (!isCallback(done)) return Reflect.apply(connect, pool, args)
    const askedAt = performance.now()
    const noting = (...results: ReadonlyArray<unknown>) => {
      const client = results[1]
      const waited = performance.now() - askedAt
      if (client instanceof DiscreetClient && waited >= countedMillis) client.waitedSince(askedAt)
      pool.emit(waitedEvent, waited)
      Reflect.apply(done, undefined, results)
    }
    return Reflect.apply(connect, pool, [noting])
  }) as pg.Pool["connect"]
}

/** Names every parameterised statement, so that PostgreSQL parses and plans each text once per connection. */
export class PreparingClient extends DiscreetClient {
  constructor(config?: string | pg.ClientConfig) {
    super(config)
    const { query } = this
    this.query = ((...args: ReadonlyArray<unknown>) => {
      const [text, values, callback] = args
      const name =
        typeof text === "string" && Array.isArray(values) && values.length > 0 ? statementName(text) : undefined
      return Reflect.apply(query, this, name === undefined ? args : [{ name, text, values }, callback])
    }) as pg.Client["query"]
  }
}
