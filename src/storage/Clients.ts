import { createHash } from "node:crypto"
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
 * A client whose errors hold no values of rows, since they are logged and traced unchanged, and which ends if its server
 * falls silent.
 */
export class DiscreetClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config)
    this.connection.prependListener("errorMessage", removeValues)
  }

  // `pg.Client#query` has a dozen overloads; only those with a callback, which `@effect/sql-pg` calls, are changed
  override query: pg.Client["query"] = ((...args: ReadonlyArray<unknown>) =>
    Reflect.apply(
      super.query,
      this,
      args.map((one) => (isCallback(one) ? this.#closingIfSilent(one) : one))
    )) as pg.Client["query"]

  /** A server that left a statement unanswered would leave the next one unanswered, too: another connection may work. */
  #closingIfSilent(callback: QueryCallback): QueryCallback {
    return (error, result) => {
      if (error instanceof Error && error.message === "Query read timeout") this.connection.stream.destroy()
      callback(error, result)
    }
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
