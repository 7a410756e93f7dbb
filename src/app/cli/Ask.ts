import { Effect, Schema } from "effect"
import { CommandFailed } from "./Failure.ts"

interface Question<A, I> {
  readonly url: URL
  /** The name of the server in messages, such as "service". */
  readonly server: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly answer: Schema.Schema<A, I>
  readonly refused: (status: number, text: string) => string
}

const timeoutMillis = 15_000

export const ask = <A, I>({ answer, body, headers, refused, server, url }: Question<A, I>) =>
  Effect.gen(function* () {
    const { ok, status, text } = yield* Effect.tryPromise({
      try: async (signal) => {
        const response = await fetch(url, {
          headers: body === undefined ? headers : { ...headers, "content-type": "application/json" },
          ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
          redirect: "error",
          signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMillis)])
        })
        return { ok: response.ok, status: response.status, text: await response.text() }
      },
      catch: (cause) => new CommandFailed({ message: `The ${server} at ${url.origin} can't be reached.`, cause })
    })
    if (!ok) return yield* new CommandFailed({ message: refused(status, text) })
    return yield* Effect.mapError(
      Schema.decode(Schema.parseJson(answer))(text),
      (cause) =>
        new CommandFailed({ message: `The server at ${url.origin} is not a ${server} of this version.`, cause })
    )
  })
