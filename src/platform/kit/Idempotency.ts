import { hash, randomUUID } from "node:crypto"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { SqlClient, type SqlError } from "@effect/sql"
import { Duration, Effect, Predicate, Redacted } from "effect"
import {
  errorBody,
  IdempotencyKeyReused,
  IdempotencyRequestInProgress,
  isApiError,
  type ServiceUnavailable,
  type Settlement
} from "../errors/Errors.ts"
import { removeOld } from "../storage/Batches.ts"
import { orUnavailable, transaction } from "../storage/Database.ts"
import { Cipher, type Encrypted } from "./crypto/Cipher.ts"
import { KeyedHash } from "./crypto/KeyedHash.ts"
import { errorLink } from "./ErrorLink.ts"
import { RequestId } from "./Request.ts"
import { service } from "./Service.ts"
import { ofTenant, type Tenant } from "./Tenant.ts"

/**
 * Answers repeats of a mutation, by `Idempotency-Key` (contract 3.5), with the first answer, byte for byte, for 24
 * hours. Keys belong to one organization and environment.
 *
 * The error's `settles` decides the result of a failure: an answer for repeats, a free key, or a key that stays bound
 * to its parameters until a repeat finds the outcome.
 */

const keepFor = "24 hours"

/** How long a request may run before it is considered dead and another with the same key may take over. */
const leaseFor = Duration.seconds(60)

interface Keyed {
  readonly tenant: Tenant
  readonly key: string
  /** The request's operation, e.g. `products.create`: the same key with another one is refused. */
  readonly operation: string
}

interface Stored {
  readonly operation: string
  readonly requestHash: Buffer
  readonly status: number | null
  readonly masterKeyId: string | null
  readonly answer: Buffer | null
}

/**
 * Claims the key if it is new, expired, free, or left by a try of the same request that died or whose outcome is
 * open. Returns how many tries under it were refused; no row if the key is taken.
 */
const makeClaim = (sql: SqlClient.SqlClient) => {
  const outlived = sql`k.created_at < now() - ${keepFor}::interval`
  return ({ key, operation, tenant }: Keyed, requestHash: Buffer, lease: string) => sql<{
    readonly refusals: number
  }>`
    INSERT INTO payments.idempotency_keys AS k
      (organization_id, environment, key, operation, request_hash, lease, locked_until)
    VALUES (${tenant.organizationId}, ${tenant.environment}, ${key}, ${operation}, ${requestHash}, ${lease},
      now() + ${Duration.toMillis(leaseFor)} * interval '1 millisecond')
    ON CONFLICT (organization_id, environment, key) DO UPDATE SET
      operation = excluded.operation, request_hash = excluded.request_hash, lease = excluded.lease,
      locked_until = excluded.locked_until, status = NULL, answer = NULL, master_key_id = NULL,
      created_at = now(), free = false, uncertain = NOT (${outlived} OR k.free),
      refusals = CASE WHEN ${outlived} THEN 0 ELSE k.refusals END
    WHERE ${outlived}
      OR (k.locked_until < now()
        AND (k.free OR (k.operation = excluded.operation AND k.request_hash = excluded.request_hash)))
    RETURNING refusals`
}

/** The statements on idempotency keys. A try holds its key by a lease until an answer is stored. */
const makeRepo = Effect.map(SqlClient.SqlClient, (sql) => {
  const ofKey = ({ key, tenant }: Keyed) => sql`${ofTenant(sql, tenant)} AND key = ${key}`

  return {
    claim: makeClaim(sql),

    find: (keyed: Keyed) => sql<Stored>`
      SELECT operation, request_hash AS "requestHash", status, master_key_id AS "masterKeyId", answer
      FROM payments.idempotency_keys WHERE ${ofKey(keyed)}`,

    /** Stores the answer under the lease; returns no row if another request has taken the key in the meantime. */
    store: (keyed: Keyed, lease: string, status: number, { ciphertext, masterKeyId }: Encrypted) => sql`
      UPDATE payments.idempotency_keys SET
        locked_until = NULL, status = ${status}, answer = ${ciphertext}, master_key_id = ${masterKeyId}
      WHERE ${ofKey(keyed)} AND lease = ${lease} AND answer IS NULL
      RETURNING 1`,

    /** Deletes the key without storing an answer. */
    delete: (keyed: Keyed, lease: string) => sql`
      DELETE FROM payments.idempotency_keys WHERE ${ofKey(keyed)} AND lease = ${lease} AND answer IS NULL`,

    /**
     * Releases the key: after a refusal, to any request; after an open outcome, or a refusal that followed one, only to
     * the same request, whose effects then keep their key.
     */
    release: (keyed: Keyed, lease: string, isRefusal: boolean) => {
      const refused = sql`(${isRefusal} AND NOT uncertain)`
      return sql`
        UPDATE payments.idempotency_keys SET
          locked_until = '-infinity', free = ${refused}, refusals = refusals + ${refused}::int
        WHERE ${ofKey(keyed)} AND lease = ${lease} AND answer IS NULL AND locked_until <> '-infinity'`
    },

    kept: (tenant: Tenant, keys: ReadonlyArray<string>) => sql<{ readonly key: string }>`
      SELECT key FROM payments.idempotency_keys
      WHERE ${ofTenant(sql, tenant)} AND key = ANY (${keys}::text[]) AND created_at >= now() - ${keepFor}::interval`,

    clean: removeOld(sql, {
      table: "idempotency_keys",
      key: ["organization_id", "environment", "key"],
      old: sql`r.created_at < now() - ${keepFor}::interval`,
      by: "created_at"
    })
  }
})

export interface IdempotentOperation<A, E = never> extends Keyed {
  /** Everything that the caller chose: the same key with other parameters is refused. */
  readonly parameters: unknown
  readonly encode: (result: A) => unknown
  /** The HTTP status of a success. Default 200. */
  readonly status?: number
  /** Database work that belongs to the success: in the same transaction as the stored answer. */
  readonly onSuccess?: (result: A) => Effect.Effect<void, SqlError.SqlError>
  /** For operations where sending the request is not enough. Default: every caller may. */
  readonly mayReplay?: (answer: unknown) => Effect.Effect<void, E>
}

export const canonical = (value: unknown): unknown => {
  if (Array.isArray(value)) {
    return value.map(canonical)
  }
  // A date has no keys: JSON writes it
  return typeof value === "object" && value !== null && !(value instanceof Date)
    ? Object.fromEntries(
        Object.entries(value)
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([key, item]) => [key, canonical(item)])
      )
    : value
}

/** Hashed before the keyed hash, which keeps a buffer as large as its longest input. */
const digestOf = (parameters: unknown): string => hash("sha256", JSON.stringify(canonical(parameters)) ?? "")

/** How a failure settles its request. After a defect or an interruption the outcome is unknown. */
const settlementOf = (error: unknown): Settlement => (isApiError(error) ? error.settles : "open")

/**
 * The key of a try's effects outside the database. Each refusal starts a new one, since the provider stores its refusal
 * under the previous one. Callers' keys hold no line breaks, so no two collide.
 */
const effectKeyOf = (key: string, refusals: number): string => (refusals === 0 ? key : `${key}\n${refusals}`)

const json = (status: number, text: string, headers: Record<string, string> = {}) =>
  HttpServerResponse.text(text, { status, contentType: "application/json", headers })

/** The context that a stored answer's ciphertext is bound to: it decrypts only in its own row. */
export const answerContext = (tenant: Tenant, key: string): string =>
  `idempotent-answer\n${tenant.organizationId}\n${tenant.environment}\n${key}`

/** Releases a key that a try holds by its lease; does nothing if the try no longer holds it. */
type Release = (operation: Keyed, lease: string, settles: Settlement) => Effect.Effect<void>

/** A stored error links to its documentation, as the first answer did. */
const linkOf = (status: number, text: string): Record<string, string> => {
  const answer: unknown = status < 400 ? null : JSON.parse(text)
  return Predicate.hasProperty(answer, "code") && Predicate.isString(answer.code)
    ? { link: errorLink({ code: answer.code, status }) }
    : {}
}

/** Logs a failure of the statement: the caller gets the original failure. */
const orLeaseEnds = (statement: Effect.Effect<unknown, SqlError.SqlError>): Effect.Effect<void> =>
  Effect.catchAll(Effect.asVoid(statement), (error) =>
    Effect.logWarning("An idempotency key was not released; it is free when its lease ends", error)
  )

type Refusal = IdempotencyKeyReused | IdempotencyRequestInProgress | ServiceUnavailable

const makeParts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const repo = yield* makeRepo
  const cipher = yield* Cipher
  const keyedHash = yield* KeyedHash
  const contextOf = ({ key, tenant }: Keyed): string => answerContext(tenant, key)
  return { sql, repo, cipher, keyedHash, contextOf }
})

type Parts = Effect.Effect.Success<typeof makeParts>

const makeReplay = ({ cipher, contextOf, repo }: Parts) =>
  Effect.fnUntraced(function* <E>(operation: IdempotentOperation<never, E>, requestHash: Buffer) {
    const [stored] = yield* repo.find(operation)
    if (stored === undefined) {
      // The first request was refused and has released the key just now
      return yield* new IdempotencyRequestInProgress()
    }
    if (stored.operation !== operation.operation || !stored.requestHash.equals(requestHash)) {
      return yield* new IdempotencyKeyReused()
    }
    const { answer, masterKeyId, status } = stored
    if (answer === null || masterKeyId === null || status === null) {
      return yield* new IdempotencyRequestInProgress()
    }
    const decrypted = yield* Effect.orDie(cipher.decrypt({ ciphertext: answer, masterKeyId }, contextOf(operation)))
    const text = Redacted.value(decrypted)
    if (operation.mayReplay !== undefined && status < 400) {
      yield* operation.mayReplay(JSON.parse(text))
    }
    return json(status, text, { "idempotent-replayed": "true", ...linkOf(status, text) })
  })

/** Stores the answer under the lease; fails if another request has taken the key in the meantime. */
const makeStore = ({ cipher, contextOf, repo }: Parts) =>
  Effect.fnUntraced(function* (operation: Keyed, lease: string, status: number, text: string) {
    const encrypted = yield* cipher.encrypt(Redacted.make(text), contextOf(operation))
    if ((yield* repo.store(operation, lease, status, encrypted)).length === 0) {
      return yield* new IdempotencyRequestInProgress()
    }
  })

const makeSettling = ({ repo }: Parts, store: ReturnType<typeof makeStore>) => {
  const forget: Release = (operation, lease) => orLeaseEnds(repo.delete(operation, lease))

  const release: Release = (operation, lease, settles) =>
    orLeaseEnds(repo.release(operation, lease, settles === "refused"))

  /** Settles a failure: stores it as the answer, or gives the key back. Then fails with it. */
  const settleFailure = <E>(operation: Keyed, lease: string, giveBack: Release, error: E) =>
    Effect.gen(function* () {
      const settles = settlementOf(error)
      if (settles === "answer" && isApiError(error)) {
        yield* store(operation, lease, error.status, JSON.stringify(errorBody(error, yield* RequestId)))
      } else {
        yield* giveBack(operation, lease, settles)
      }
      return yield* Effect.fail(error)
    })

  return { forget, release, settleFailure }
}

const makeWithKey =
  (
    { keyedHash, repo }: Parts,
    replay: ReturnType<typeof makeReplay>,
    { settleFailure }: ReturnType<typeof makeSettling>
  ) =>
  <E, R, E2>(
    operation: IdempotentOperation<never, E2>,
    giveBack: Release,
    execute: (lease: string, refusals: number) => Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
  ): Effect.Effect<HttpServerResponse.HttpServerResponse, Exclude<E | E2, SqlError.SqlError> | Refusal, R> =>
    // A caller who disconnects during the claim gives the key back, like one who disconnects later
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const lease = randomUUID()
        const requestHash = keyedHash(digestOf(operation.parameters))
        const [claimed] = yield* repo.claim(operation, requestHash, lease)
        if (claimed === undefined) {
          return yield* restore(replay(operation, requestHash))
        }
        return yield* execute(lease, claimed.refusals).pipe(
          Effect.catchAll((error) => settleFailure(operation, lease, giveBack, error)),
          restore,
          // The caller is gone, there was a defect, or nothing could be stored: the key must not stay taken
          Effect.onExit((exit) => (exit._tag === "Success" ? Effect.void : giveBack(operation, lease, "open")))
        )
      })
    ).pipe(orUnavailable)

const make = Effect.gen(function* () {
  const parts = yield* makeParts
  const replay = makeReplay(parts)
  const store = makeStore(parts)
  const settling = makeSettling(parts, store)
  const withKey = makeWithKey(parts, replay, settling)
  const answer = <A>(operation: IdempotentOperation<A, unknown>, lease: string, result: A) =>
    Effect.gen(function* () {
      const status = operation.status ?? 200
      const text = JSON.stringify(operation.encode(result))
      yield* store(operation, lease, status, text)
      yield* operation.onSuccess?.(result) ?? Effect.void
      return json(status, text)
    })
  /**
   * Runs an operation whose effect is outside the database (a call to the provider, repeated safely under a key
   * derived from the key it gets), and stores its answer. If the process crashes between the two, or the outcome is
   * open, a repeat runs it again under the same key; after a refusal it runs under another one.
   */
  const run = <A, E, R, E2 = never>(
    operation: IdempotentOperation<A, E2>,
    effect: (effectKey: string) => Effect.Effect<A, E, R>
  ) =>
    withKey(operation, settling.release, (lease, refusals) =>
      Effect.flatMap(effect(effectKeyOf(operation.key, refusals)), (result) =>
        transaction(parts.sql)(answer(operation, lease, result))
      )
    )
  /**
   * Runs an operation whose effect is in the database: it and its answer are stored together or not at all. `prepare`
   * does slow work without the database (a look-up, a hash), before the transaction. Without a key no answer is kept,
   * since nobody could ask for it.
   */
  const runInTransaction = <A, E, R, E2, R2>(
    { key, ...operation }: Omit<IdempotentOperation<A>, "key" | "onSuccess"> & { readonly key: string | undefined },
    prepare: Effect.Effect<Effect.Effect<A, E, R>, E2, R2>
  ): Effect.Effect<HttpServerResponse.HttpServerResponse, Exclude<E | E2, SqlError.SqlError> | Refusal, R | R2> =>
    key === undefined
      ? Effect.flatMap(prepare, transaction(parts.sql)).pipe(
          Effect.map((result) => json(operation.status ?? 200, JSON.stringify(operation.encode(result)))),
          orUnavailable
        )
      : withKey({ ...operation, key }, settling.forget, (lease) =>
          Effect.flatMap(prepare, (effect) =>
            transaction(parts.sql)(Effect.flatMap(effect, (result) => answer({ ...operation, key }, lease, result)))
          )
        )
  /** Which of these keys of a tenant were claimed within 24 hours and not deleted since. */
  const kept = (tenant: Tenant, keys: ReadonlyArray<string>) =>
    orUnavailable(Effect.map(parts.repo.kept(tenant, keys), (rows) => new Set(rows.map(({ key }) => key))))

  return { run, runInTransaction, kept, clean: orUnavailable(parts.repo.clean) }
})

/** Runs mutations once per `Idempotency-Key`. */
export class Idempotency extends service<Idempotency>()("connected-payments/kit/Idempotency", make) {}
