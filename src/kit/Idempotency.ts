import { createHash, randomUUID } from "node:crypto"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { SqlClient, type SqlError } from "@effect/sql"
import { Context, Duration, Effect, Layer, Redacted } from "effect"
import {
  type ApiError,
  errorBody,
  IdempotencyKeyReused,
  IdempotencyRequestInProgress,
  isApiError,
  type ServiceUnavailable
} from "../Errors.ts"
import { orUnavailable, transaction } from "../storage/Database.ts"
import { Cipher } from "./Cipher.ts"
import { RequestId } from "./Request.ts"
import type { Tenant } from "./Tenant.ts"

/**
 * Repeats of a mutation, by `Idempotency-Key` (contract, Authentication, rule 9): the first answer again, byte for byte,
 * for 24 hours. Keys belong to one organization and environment.
 */

/** How long an answer is kept. */
const keepFor = "24 hours"

/** How long a request may run before another one with the same key may take its place: it is taken for dead. */
const leaseFor = Duration.seconds(60)

/** One mutation under a key. */
export interface IdempotentOperation<A> {
  readonly tenant: Tenant
  readonly key: string
  /** What is done, e.g. `products.create`: the same key with another operation is refused. */
  readonly operation: string
  /** Everything that the caller chose: the same key with other parameters is refused. */
  readonly parameters: unknown
  /** The answer's body, as it goes on the wire. */
  readonly encode: (result: A) => unknown
  /** Status of a success. Default 200. */
  readonly status?: number
  /** Database work that belongs to the success: in the same transaction as the stored answer. */
  readonly onSuccess?: (result: A) => Effect.Effect<void, SqlError.SqlError>
}

interface Stored {
  readonly operation: string
  readonly requestHash: Buffer
  readonly lease: string
  readonly status: number | null
  readonly masterKeyId: string | null
  readonly answer: Buffer | null
}

/** JSON with sorted keys: the order in which a caller writes a body's keys is no difference. */
const canonical = (value: unknown): unknown => {
  if (Array.isArray(value)) {
    return value.map(canonical)
  }
  return typeof value === "object" && value !== null
    ? Object.fromEntries(
        Object.entries(value)
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([key, item]) => [key, canonical(item)])
      )
    : value
}

const hashOf = (parameters: unknown): Buffer =>
  createHash("sha256")
    .update(JSON.stringify(canonical(parameters)) ?? "")
    .digest()

/**
 * Whether a failure is an answer to be kept: not what was refused before the operation began (401, 403, 422, 429), not
 * a failure of ours or the provider's (5xx), and nothing about the key itself.
 */
const isKept = (error: unknown): error is ApiError =>
  isApiError(error) &&
  error.status < 500 &&
  ![401, 403, 422, 429].includes(error.status) &&
  error._tag !== "IdempotencyKeyReused" &&
  error._tag !== "IdempotencyRequestInProgress"

const json = (status: number, text: string, headers: Record<string, string> = {}) =>
  HttpServerResponse.text(text, { status, contentType: "application/json", headers })

/** What a stored answer's ciphertext is bound to: it decrypts in its own row alone. */
export const answerContext = (tenant: Tenant, key: string): string =>
  `idempotent-answer\n${tenant.organizationId}\n${tenant.environment}\n${key}`

type Refusal = IdempotencyKeyReused | IdempotencyRequestInProgress | ServiceUnavailable

export class Idempotency extends Context.Tag("connected-payments/kit/Idempotency")<
  Idempotency,
  {
    /**
     * Runs an operation whose effect is outside the database (a call to the provider, repeated safely under a derived
     * key), and stores its answer. Where a crash comes between the two, a repeat runs it again.
     */
    readonly run: <A, E, R>(
      operation: IdempotentOperation<A>,
      effect: Effect.Effect<A, E, R>
    ) => Effect.Effect<HttpServerResponse.HttpServerResponse, Exclude<E, SqlError.SqlError> | Refusal, R>
    /**
     * Runs an operation whose effect is in the database: it and its answer are there together or not at all. What
     * takes time without the database (a look-up, a hash) is prepared first, outside the transaction.
     */
    readonly runInTransaction: <A, E, R, E2, R2>(
      operation: IdempotentOperation<A>,
      prepare: Effect.Effect<Effect.Effect<A, E, R>, E2, R2>
    ) => Effect.Effect<HttpServerResponse.HttpServerResponse, Exclude<E | E2, SqlError.SqlError> | Refusal, R | R2>
    /** Removes what has outlived its 24 hours. */
    readonly clean: Effect.Effect<void, ServiceUnavailable>
  }
>() {
  static readonly layer: Layer.Layer<Idempotency, never, SqlClient.SqlClient | Cipher> = Layer.effect(
    Idempotency,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const cipher = yield* Cipher

      const contextOf = ({ key, tenant }: IdempotentOperation<never>): string => answerContext(tenant, key)

      const ofKey = ({ key, tenant }: IdempotentOperation<never>) =>
        sql`organization_id = ${tenant.organizationId} AND environment = ${tenant.environment} AND key = ${key}`

      /** Takes the key, where it is new, has outlived its time, or was left by a request that died. */
      const claim = (operation: IdempotentOperation<never>, requestHash: Buffer, lease: string) =>
        Effect.map(
          sql`
            INSERT INTO payments.idempotency_keys AS k
              (organization_id, environment, key, operation, request_hash, lease, locked_until)
            VALUES (${operation.tenant.organizationId}, ${operation.tenant.environment}, ${operation.key},
              ${operation.operation}, ${requestHash}, ${lease},
              now() + ${Duration.toMillis(leaseFor)} * interval '1 millisecond')
            ON CONFLICT (organization_id, environment, key) DO UPDATE SET
              operation = excluded.operation, request_hash = excluded.request_hash, lease = excluded.lease,
              locked_until = excluded.locked_until, status = NULL, answer = NULL, master_key_id = NULL,
              created_at = now()
            WHERE k.created_at < now() - ${keepFor}::interval
              OR (k.locked_until < now() AND k.operation = excluded.operation
                AND k.request_hash = excluded.request_hash)
            RETURNING 1`,
          (rows) => rows.length > 0
        )

      const find = (operation: IdempotentOperation<never>) =>
        Effect.map(
          sql<Stored>`
            SELECT operation, request_hash AS "requestHash", lease, status, master_key_id AS "masterKeyId", answer
            FROM payments.idempotency_keys WHERE ${ofKey(operation)}`,
          ([row]) => row
        )

      const replay = Effect.fnUntraced(function* (operation: IdempotentOperation<never>, requestHash: Buffer) {
        const stored = yield* find(operation)
        if (stored === undefined) {
          // The first request was refused and gave the key back in this very moment
          return yield* new IdempotencyRequestInProgress()
        }
        if (stored.operation !== operation.operation || !stored.requestHash.equals(requestHash)) {
          return yield* new IdempotencyKeyReused()
        }
        const { answer, masterKeyId, status } = stored
        if (answer === null || masterKeyId === null || status === null) {
          return yield* new IdempotencyRequestInProgress()
        }
        const text = yield* Effect.orDie(cipher.decrypt({ ciphertext: answer, masterKeyId }, contextOf(operation)))
        return json(status, Redacted.value(text), { "idempotent-replayed": "true" })
      })

      /** Stores the answer under the lease; fails where another request has taken the key in the meantime. */
      const store = Effect.fnUntraced(function* (
        operation: IdempotentOperation<never>,
        lease: string,
        status: number,
        text: string
      ) {
        const { ciphertext, masterKeyId } = yield* cipher.encrypt(Redacted.make(text), contextOf(operation))
        const stored = yield* sql`
          UPDATE payments.idempotency_keys SET
            locked_until = NULL, status = ${status}, answer = ${ciphertext}, master_key_id = ${masterKeyId}
          WHERE ${ofKey(operation)} AND lease = ${lease} AND answer IS NULL
          RETURNING 1`
        if (stored.length === 0) {
          return yield* new IdempotencyRequestInProgress()
        }
      })

      const giveBack = (operation: IdempotentOperation<never>, lease: string) =>
        sql`DELETE FROM payments.idempotency_keys WHERE ${ofKey(operation)} AND lease = ${lease} AND answer IS NULL`.pipe(
          Effect.catchAll((error) => Effect.logWarning("An idempotency key was not given back; its lease ends", error))
        )

      /** What a failure leaves behind: an answer, or a key that is free again. */
      const settleFailure = <E>(operation: IdempotentOperation<never>, lease: string, error: E) =>
        Effect.gen(function* () {
          if (!isKept(error)) {
            yield* giveBack(operation, lease)
            return yield* Effect.fail(error)
          }
          const text = JSON.stringify(errorBody(error, yield* RequestId))
          yield* store(operation, lease, error.status, text)
          return yield* Effect.fail(error)
        })

      const withKey = <E, R>(
        operation: IdempotentOperation<never>,
        execute: (lease: string) => Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
      ): Effect.Effect<HttpServerResponse.HttpServerResponse, Exclude<E, SqlError.SqlError> | Refusal, R> =>
        Effect.gen(function* () {
          const lease = randomUUID()
          const requestHash = hashOf(operation.parameters)
          if (!(yield* claim(operation, requestHash, lease))) {
            return yield* replay(operation, requestHash)
          }
          return yield* execute(lease).pipe(
            Effect.catchAll((error) => settleFailure(operation, lease, error)),
            // Nobody waits for the answer any more, or a bug: the key must not stay taken
            Effect.onExit((exit) => (exit._tag === "Failure" ? giveBack(operation, lease) : Effect.void))
          )
        }).pipe(orUnavailable)

      const answer = <A>(operation: IdempotentOperation<A>, lease: string, result: A) =>
        Effect.gen(function* () {
          const status = operation.status ?? 200
          const text = JSON.stringify(operation.encode(result))
          yield* store(operation, lease, status, text)
          yield* operation.onSuccess?.(result) ?? Effect.void
          return json(status, text)
        })

      const run: Idempotency["Type"]["run"] = (operation, effect) =>
        withKey(operation, (lease) =>
          Effect.flatMap(effect, (result) => transaction(sql)(answer(operation, lease, result)))
        )

      const runInTransaction: Idempotency["Type"]["runInTransaction"] = (operation, prepare) =>
        withKey(operation, (lease) =>
          Effect.flatMap(prepare, (effect) =>
            transaction(sql)(Effect.flatMap(effect, (result) => answer(operation, lease, result)))
          )
        )

      return {
        run,
        runInTransaction,
        clean: sql`DELETE FROM payments.idempotency_keys WHERE created_at < now() - ${keepFor}::interval`.pipe(
          Effect.asVoid,
          orUnavailable
        )
      }
    })
  )
}
