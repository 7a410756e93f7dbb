import { randomBytes } from "node:crypto"
import type { SqlError } from "@effect/sql"
import { type Array as Arr, type Context, Duration, Effect, Either, Redacted } from "effect"
import { isNonEmptyReadonlyArray, type NonEmptyReadonlyArray } from "effect/Array"
import {
  signatureHeaderName,
  webhookIdHeaderName,
  webhookSignatureHeaderName,
  webhookTimestampHeaderName
} from "../../events/DeliveryHeaders.ts"
import type { Tenant } from "../../identity/Principal.ts"
import { BoundedMap } from "../../platform/kit/Concurrency.ts"
import { type Cipher, DecryptionFailed } from "../../platform/kit/crypto/Cipher.ts"
import { HmacKey, HmacSha256 } from "../../platform/kit/crypto/KeyedHash.ts"
import type { EndpointId } from "../../platform/kit/Ids.ts"
import type { ClaimedDelivery, Destination, StoredSecret } from "../queue/Claim.ts"
import type { Queue } from "../queue/Queue.ts"
import { deliveryWindow } from "./Outcome.ts"

/**
 * How long a signing secret signs after a rotation has replaced it (contract 8.6), defined only here: as durations, as
 * SQL, and as a function of times.
 */

/** How long a replaced secret signs new events, together with its successor. */
export const rotationOverlap = Duration.hours(24)

const interval = (duration: Duration.Duration): string => `interval '${Duration.toHours(duration)} hours'`

/** SQL: until when the secret in row `s` signs new events; null for the current one. */
export const signsUntil = (s: string): string => `${s}.retired_at + ${interval(rotationOverlap)}`

/** SQL: whether the secret in row `s` has been replaced and still signs new events. */
export const isOverlapping = (s: string): string => `${s}.retired_at > now() - ${interval(rotationOverlap)}`

/** SQL: whether the secret in row `s` signs new events. */
export const signsNew = (s: string): string => `(${s}.retired_at IS NULL OR ${isOverlapping(s)})`

/** SQL: whether the secret in row `s` signs the delivery in row `d`. */
export const signsDelivery = (s: string, d: string): string => `(${signsNew(s)} OR ${d}.created_at < ${s}.retired_at)`

/** SQL: whether the delivery in row `d` is so old that its secrets may no longer sign it. */
export const mayBeUnsigned = (d: string): string => `${d}.created_at < now() - ${interval(rotationOverlap)}`

/** SQL: whether the secret in row `s` no longer signs new events. */
export const signsNoNew = (s: string): string => `${s}.retired_at < now() - ${interval(rotationOverlap)}`

/** SQL: whether the secret in row `s` no longer signs anything: no delivery queued before the rotation is left. */
export const hasEnded = (s: string): string => `${s}.retired_at < now() - ${interval(deliveryWindow)}`

/** SQL: whether the delivery in row `d` may still be sent, automatically or manually. */
export const mayStillBeSent = (d: string): string =>
  `(${d}.state = 'queued' OR ${d}.state = 'failed' AND ${d}.created_at > now() - ${interval(deliveryWindow)})`

/**
 * SQL: the ids of the secrets that sign new events of the endpoint in row `e`, the current one first, as JSON; null if
 * it has none. After several rotations within the overlap: the newest secret and its predecessor.
 */
export const signingSecretIds = (e: string): string => `(
  SELECT json_agg(id ORDER BY retired_at DESC NULLS FIRST) FROM (
    SELECT s.id, s.retired_at FROM payments.endpoint_secrets s
    WHERE s.organization_id = ${e}.organization_id AND s.environment = ${e}.environment AND s.endpoint_id = ${e}.id
      AND ${signsNew("s")}
    ORDER BY s.retired_at DESC NULLS FIRST LIMIT 2) AS newest)`

/**
 * SQL: whether any secret signs new events of the endpoint in row `e`. After its master key was lost, none does until
 * its secret is rotated, and nothing new can be sent to it.
 */
export const canSign = (e: string): string => `EXISTS (
  SELECT 1 FROM payments.endpoint_secrets s
  WHERE s.organization_id = ${e}.organization_id AND s.environment = ${e}.environment AND s.endpoint_id = ${e}.id
    AND ${signsNew("s")})`

/** When a delivery was queued and when it was claimed, in Unix milliseconds by the database's clock. */
interface DeliveryTimes {
  readonly createdAt: number
  readonly claimedAt: number
}

const overlapMillis = Duration.toMillis(rotationOverlap)

/** Whether a secret signs a delivery; `retiredAt` in Unix milliseconds, null for the current one. */
export const signs = (retiredAt: number | null, { claimedAt, createdAt }: DeliveryTimes): boolean =>
  retiredAt === null || retiredAt > claimedAt - overlapMillis || createdAt < retiredAt

/** A new signing secret: `whsec_` and 32 random bytes as base64url. The whole string is the HMAC key. */
export const newSigningSecret = (): Redacted.Redacted => Redacted.make(`whsec_${randomBytes(32).toString("base64url")}`)

/**
 * The key of a signing secret in the form that Standard Webhooks libraries take: `whsec_` and the base64 of the key's
 * bytes, which are those of the whole secret.
 */
export const standardWebhooksSecretOf = (signingSecret: string): string =>
  `whsec_${Buffer.from(signingSecret).toString("base64")}`

/** The context that a stored secret's ciphertext is bound to: it decrypts only in its own row. */
export const secretContext = (tenant: Tenant, secretId: string): string =>
  `endpoint-secret\n${tenant.organizationId}\n${tenant.environment}\n${secretId}`

/** Creates the signatures that consumers verify (contract 8): the service's own form, and that of Standard Webhooks. */

export interface SignatureInput {
  /** The id of the event in the body, the same in each attempt. */
  readonly eventId: string
  /** Time of the attempt, in whole Unix seconds. */
  readonly timestamp: number
  /** The body exactly as it is sent; a string means its UTF-8 bytes. */
  readonly body: string | Uint8Array
  /** The secrets bound to the delivery, newest first: one, or two within 24 hours of a rotation. */
  readonly secrets: Arr.NonEmptyReadonlyArray<Redacted.Redacted<string>>
}

/** The headers by which a consumer verifies a delivery. */
export interface SignatureHeaders extends Readonly<Record<string, string>> {
  /** `t=<Unix seconds>,v1=<hex>`, with one `v1` for each secret in their order. */
  readonly [signatureHeaderName]: string
  readonly [webhookIdHeaderName]: string
  readonly [webhookTimestampHeaderName]: string
  /** `v1,<base64>` for each secret in their order, separated by spaces. */
  readonly [webhookSignatureHeaderName]: string
}

const hmac = new HmacSha256()

/** Prepared keys, cached for as long as the secrets themselves are held. */
const keys = new WeakMap<Redacted.Redacted, HmacKey>()

const keyOf = (secret: Redacted.Redacted): HmacKey => {
  let key = keys.get(secret)
  if (key === undefined) {
    key = new HmacKey(Redacted.value(secret))
    keys.set(secret, key)
  }
  return key
}

/**
 * Signs a delivery in both forms. Each signature is HMAC-SHA256, keyed by the bytes of the full secret, including its
 * prefix: over `<t>.<body>` in `Service-Signature`, and over `<event id>.<t>.<body>` in `webhook-signature`. The two
 * can't be confused: an event's id is not a time, and no body begins with digits and a dot.
 *
 * Throws a `RangeError` if the timestamp is not a whole, non-negative number: no consumer could verify such headers.
 */
export const signatureHeaders = ({ body, eventId, secrets, timestamp }: SignatureInput): SignatureHeaders => {
  if (!Number.isSafeInteger(timestamp) || timestamp < 0) throw new RangeError("timestamp must be whole Unix seconds")
  const start = `${timestamp}.`
  const standardStart = `${eventId}.${start}`
  let own = `t=${timestamp}`
  let standard = ""
  hmac.setBody(body)
  for (const secret of secrets) {
    const key = keyOf(secret)
    own += `,v1=${hmac.sign(key, start, "hex")}`
    if (standard !== "") standard += " "
    standard += `v1,${hmac.sign(key, standardStart, "base64")}`
  }
  return {
    [signatureHeaderName]: own,
    [webhookIdHeaderName]: eventId,
    [webhookTimestampHeaderName]: String(timestamp),
    [webhookSignatureHeaderName]: standard
  }
}

/**
 * In-memory cache of the destinations and signing secrets of a process's deliveries: an endpoint's URL never changes,
 * and a secret is decrypted once rather than for each attempt.
 */

/** How long cached data is used, in milliseconds: far below the 24 hours that a rotation leaves. */
const believedFor = 30_000

/** The most erased secrets remembered per endpoint. */
const maxErased = 1000

type Decrypted = Pick<StoredSecret, "retiredAt"> & {
  readonly secret: Either.Either<Redacted.Redacted, DecryptionFailed>
}

interface Known {
  readonly url: string
  readonly isDeleted: boolean
  /** By id; null for those that deliveries are bound to but that no longer exist: an erased id is never reused. */
  readonly secrets: ReadonlyMap<string, Decrypted | null>
  readonly readAt: number
}

export interface SigningDestination {
  readonly url: string
  /** Newest first. */
  readonly secrets: NonEmptyReadonlyArray<Redacted.Redacted>
}

export class Destinations {
  readonly #queue: Context.Tag.Service<Queue>
  readonly #cipher: Context.Tag.Service<Cipher>
  readonly #known = new BoundedMap<Known>()

  constructor(queue: Context.Tag.Service<Queue>, cipher: Context.Tag.Service<Cipher>) {
    this.#queue = queue
    this.#cipher = cipher
  }

  /** Reads missing destinations of these deliveries in one statement; usually, none is missing. */
  load(deliveries: ReadonlyArray<ClaimedDelivery>): Effect.Effect<void, SqlError.SqlError> {
    const now = performance.now()
    const missing = new Map<EndpointId, [ClaimedDelivery, ...Array<ClaimedDelivery>]>()
    for (const delivery of deliveries) {
      if (this.#isKnown(delivery, now)) continue
      const others = missing.get(delivery.endpointId)
      if (others === undefined) missing.set(delivery.endpointId, [delivery])
      else others.push(delivery)
    }
    return missing.size === 0 ? Effect.void : this.#read(missing, now)
  }

  /** Whether a delivery's endpoint was deleted, according to the cache. */
  isDeleted({ endpointId }: ClaimedDelivery): boolean {
    return this.#known.get(endpointId)?.isDeleted === true
  }

  /**
   * The current destination of a delivery. If all of its secrets are erased, such as after very many rotations, the
   * endpoint's current one signs it. Fails if one of its secrets can't be decrypted, or if none is left to sign with.
   */
  of(delivery: ClaimedDelivery): Either.Either<SigningDestination, DecryptionFailed> {
    const known = this.#known.get(delivery.endpointId)
    if (known === undefined) return Either.left(new DecryptionFailed({ message: "The delivery's endpoint is gone" }))
    const secrets: Array<Redacted.Redacted> = []
    let isErased = true
    // In the order of the delivery's own list: the secret that was current comes first
    for (const id of delivery.secretIds) {
      const stored = known.secrets.get(id)
      if (!stored) continue
      isErased = false
      if (!signs(stored.retiredAt, delivery)) continue
      if (Either.isLeft(stored.secret)) return Either.left(stored.secret.left)
      secrets.push(stored.secret.right)
    }
    const current = isErased ? [...known.secrets.values()].find((stored) => stored?.retiredAt === null) : undefined
    if (current) return Either.map(current.secret, (secret) => ({ url: known.url, secrets: [secret] }))
    return isNonEmptyReadonlyArray(secrets)
      ? Either.right({ url: known.url, secrets })
      : Either.left(new DecryptionFailed({ message: "The delivery's secrets are gone" }))
  }

  #isKnown({ endpointId, secretIds }: ClaimedDelivery, now: number): boolean {
    const known = this.#known.get(endpointId)
    return (
      known !== undefined &&
      now - known.readAt < believedFor &&
      secretIds.every((id) => {
        const stored = known.secrets.get(id)
        return stored === null || (stored !== undefined && Either.isRight(stored.secret))
      })
    )
  }

  #read(
    missing: ReadonlyMap<EndpointId, NonEmptyReadonlyArray<ClaimedDelivery>>,
    readAt: number
  ): Effect.Effect<void, SqlError.SqlError> {
    const oneOfEach = [...missing.values()].map(([delivery]) => delivery)
    return Effect.flatMap(this.#queue.destinations(oneOfEach), (found) =>
      Effect.forEach(
        missing,
        ([endpointId, deliveries]) => {
          const before = this.#known.get(endpointId)?.secrets ?? []
          this.#known.delete(endpointId)
          const destination = found.get(endpointId)
          if (destination === undefined) return Effect.void
          const erased = [...before].flatMap(([id, stored]) => (stored === null ? [id] : []))
          const ids = [
            ...(erased.length < maxErased ? erased : []),
            ...deliveries.flatMap(({ secretIds }) => secretIds)
          ]
          return Effect.map(this.#decrypt(deliveries[0], destination), (there) =>
            this.#known.set(endpointId, {
              ...destination,
              secrets: new Map([...ids.map((id) => [id, null] as const), ...there]),
              readAt
            })
          )
        },
        { discard: true }
      )
    )
  }

  #decrypt(delivery: ClaimedDelivery, { secrets }: Destination) {
    return Effect.forEach(secrets, ({ encrypted, id, retiredAt }) =>
      Effect.map(
        Effect.either(this.#cipher.decrypt(encrypted, secretContext(delivery, id))),
        (secret): [string, Decrypted | null] => [id, { retiredAt, secret }]
      )
    )
  }
}
