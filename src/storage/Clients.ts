import { createHash } from "node:crypto"
import { performance } from "node:perf_hooks"
import { Predicate } from "effect"
import pg from "pg"
import { removeValues } from "../telemetry/ServerErrors.ts"

/** Statement texts are constants and few; the bound only guards against a text that is built by mistake. */
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

const isCallback = (value: unknown): value is QueryCallback => typeof value === "function"

/**
 * The bound of a client's queries in milliseconds, 0 if there is none; from now on, `pg` does not enforce it. It would create a
 * timer and a callback for each query, and assign the callback to a property. V8 puts such functions into the old space,
 * where each keeps its query with all rows until the whole heap is collected.
 */
const takeOverBound = (client: pg.Client): number => {
  const parameters: unknown = Reflect.get(client, "connectionParameters")
  if (!Predicate.isRecord(parameters)) return 0
  const millis = Number(parameters["query_timeout"])
  parameters["query_timeout"] = 0
  return Number.isFinite(millis) ? millis : 0
}

/** With a code, as Node's errors of connections have: logs show that, but no message. */
const silence = (millis: number) =>
  Object.assign(new Error(`The database has not answered for ${millis} ms`), { code: "ETIMEDOUT" })

/**
 * A client whose errors hold no values of rows, since they are logged and traced unchanged, and which ends if its server
 * falls silent: if it answers nothing for as long as `query_timeout` says, though something was asked.
 */
export class DiscreetClient extends pg.Client {
  readonly #silenceMillis = takeOverBound(this)
  #unanswered = 0
  /** When it last had an answer, or was asked with nothing else unanswered, by `performance.now()`. */
  #heardAt = 0
  #timer: NodeJS.Timeout | null = null

  constructor(config?: string | pg.ClientConfig) {
    super(config)
    this.connection.prependListener("errorMessage", removeValues)
  }

  // `pg.Client#query` has a dozen overloads, with a callback and without
  override query: pg.Client["query"] = ((...args: ReadonlyArray<unknown>) => {
    if (this.#silenceMillis === 0) return Reflect.apply(super.query, this, args)
    const own = args.map((one) => (isCallback(one) ? this.#noting(one) : one))
    const result: unknown = Reflect.apply(super.query, this, own)
    // A cursor has neither: whoever reads it has to bound that
    if (result instanceof Promise) result.then(this.#answered, this.#answered)
    else if (!args.some(isCallback)) return result
    this.#asked()
    return result
  }) as pg.Client["query"]

  #noting(callback: QueryCallback): QueryCallback {
    return (error, result) => {
      this.#answered()
      callback(error, result)
    }
  }

  #asked(): void {
    if (this.#unanswered === 0) this.#heardAt = performance.now()
    this.#unanswered += 1
    if (this.#timer === null) this.#lookAfter(this.#silenceMillis)
  }

  readonly #answered = (): void => {
    this.#unanswered -= 1
    this.#heardAt = performance.now()
  }

  #lookAfter(millis: number): void {
    // Timers run before what has arrived is read: after a pause of this process, an answer may be there already
    this.#timer = setTimeout(() => setImmediate(this.#look), millis).unref()
  }

  /** A server that left a query unanswered would leave the next one unanswered, too: another connection may work. */
  readonly #look = (): void => {
    this.#timer = null
    if (this.#unanswered === 0) return
    const left = this.#heardAt + this.#silenceMillis - performance.now()
    if (left > 0) this.#lookAfter(left)
    else this.connection.stream.destroy(silence(this.#silenceMillis))
  }
}

/** A client that names every parameterised statement, so that PostgreSQL parses and plans each text once per connection. */
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
