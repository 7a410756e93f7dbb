/**
 * In-memory cache of the destinations and signing secrets of a process's deliveries: an endpoint's URL never changes,
 * and a secret is decrypted once rather than for each attempt.
 */
import type { SqlError } from "@effect/sql"
import { type Context, Effect, Either, type Redacted } from "effect"
import { isNonEmptyReadonlyArray, type NonEmptyReadonlyArray } from "effect/Array"
import { BoundedMap } from "../../platform/kit/BoundedMap.ts"
import { type Cipher, DecryptionFailed } from "../../platform/kit/Cipher.ts"
import type { EndpointId } from "../../platform/kit/Ids.ts"
import type { ClaimedDelivery, Destination, StoredSecret } from "../queue/Claim.ts"
import type { Queue } from "../queue/Queue.ts"
import { signs } from "./SecretLifetime.ts"
import { secretContext } from "./Secrets.ts"

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

/** The URL and secrets of an attempt. */
export interface SigningDestination {
  readonly url: string
  /** Newest first. */
  readonly secrets: NonEmptyReadonlyArray<Redacted.Redacted>
}

/** A worker's cache of destinations. */
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
