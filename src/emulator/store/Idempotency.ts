import { createHash } from "node:crypto"
import { Clock, Effect } from "effect"
import type { FormInput } from "../api/Form.ts"
import type { EmulatorError } from "../EmulatorError.ts"
import { errorBody, ProviderError, refuse } from "../ProviderError.ts"
import type { StoredAnswer } from "../Records.ts"
import type { Store, Transaction } from "./Store.ts"

/** How long answers are kept, in seconds; the provider promises at least as long. */
const lifetime = 24 * 60 * 60

const maximumKeyLength = 255

export interface Answer {
  readonly status: number
  readonly body: string
  readonly replayOf?: string
}

export interface KeyedRequest {
  readonly scope: string
  readonly key: string
  readonly method: string
  readonly path: string
  readonly parameters: FormInput
  readonly requestId: string
  /** Unix seconds. */
  readonly now: number
}

/**
 * Runs the operation, or replays the first answer to its key byte for byte. The answer, even a refusal, is stored in the
 * operation's own transaction. An operation that fails with a server error has no effect, and its key stays free.
 *
 * Errors: `idempotency_error` (400) if the parameters or the endpoint differ from the first request,
 * `idempotency_key_in_use` (409) while the first request is running.
 */
export type RunOnce = (
  request: KeyedRequest,
  operation: (transaction: Transaction) => Effect.Effect<Answer, ProviderError>
) => Effect.Effect<Answer, ProviderError | EmulatorError>

/** Sorts parameters by name, so that their order makes no difference. */
const ordered = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(ordered)
  if (typeof value !== "object" || value === null) return value
  const entries: ReadonlyArray<readonly [string, unknown]> = Object.entries(value)
  return entries.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([name, inner]) => [name, ordered(inner)])
}

const fingerprint = (parameters: FormInput): string =>
  createHash("sha256")
    .update(JSON.stringify(ordered(parameters)))
    .digest("hex")

const mismatch = (message: string): ProviderError =>
  new ProviderError({ status: 400, type: "idempotency_error", message })

const checkSame = (
  stored: StoredAnswer,
  request: KeyedRequest,
  parameters: string
): Effect.Effect<void, ProviderError> => {
  if (stored.method !== request.method || stored.path !== request.path) {
    return mismatch(
      `Keys for idempotent requests can only be used for the same endpoint they were first used for ('${stored.path}' vs '${request.path}').`
    )
  }
  return stored.parameters === parameters
    ? Effect.void
    : mismatch("Keys for idempotent requests can only be used with the same parameters they were first used with.")
}

const inUse = (key: string): ProviderError =>
  refuse({
    status: 409,
    code: "idempotency_key_in_use",
    message: `There is currently another in-progress request using this Idempotent Key: ${key}`
  })

/** Keys in use are kept in memory only: after a restart no request is running. */
export const makeIdempotency = (store: Store): RunOnce => {
  const underWay = new Set<string>()

  const answerOnce: RunOnce = (request, operation) => {
    const parameters = fingerprint(request.parameters)
    const keep = (transaction: Transaction, { body, status }: Answer) => {
      const { key, method, now, path, requestId, scope } = request
      transaction.in(scope).put("answer", key, { key, method, path, parameters, status, body, requestId, created: now })
    }
    const keepRefusal = (error: ProviderError): Effect.Effect<Answer, ProviderError | EmulatorError> => {
      if (error.status >= 500 || error.type === "idempotency_error") return Effect.fail(error)
      const answer = { status: error.status, body: errorBody(error) }
      return store.transact((transaction) => Effect.sync(() => keep(transaction, answer))).pipe(Effect.as(answer))
    }
    return store
      .transact((transaction) =>
        Effect.gen(function* () {
          const stored = transaction.in(request.scope).get("answer", request.key)
          if (stored !== undefined && stored.created + lifetime > request.now) {
            yield* checkSame(stored, request, parameters)
            return { status: stored.status, body: stored.body, replayOf: stored.requestId }
          }
          const answer = yield* operation(transaction)
          keep(transaction, answer)
          return answer
        })
      )
      .pipe(Effect.catchTag("ProviderError", keepRefusal))
  }

  return (request, operation) => {
    const { key, scope } = request
    if (key.length > maximumKeyLength) {
      return refuse({ message: `Idempotency keys can have at most ${maximumKeyLength} characters.` })
    }
    const slot = JSON.stringify([scope, key])
    const reserve = Effect.suspend(() => (underWay.has(slot) ? inUse(key) : Effect.succeed(underWay.add(slot))))
    return Effect.acquireUseRelease(
      reserve,
      () => answerOnce(request, operation),
      () => Effect.sync(() => underWay.delete(slot))
    )
  }
}

export const forgetOldAnswers = (store: Store): Effect.Effect<void, EmulatorError> =>
  Effect.flatMap(Clock.currentTimeMillis, (milliseconds) =>
    store.transact((transaction) =>
      Effect.sync(() => {
        const oldest = milliseconds / 1_000 - lifetime
        for (const scope of transaction.scopes()) {
          const objects = transaction.in(scope)
          for (const { created, key } of objects.all("answer")) if (created < oldest) objects.remove("answer", key)
        }
      })
    )
  )
