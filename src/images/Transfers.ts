import { Deferred, type Duration, Effect, type Scope } from "effect"
import { RateLimitExceeded, ServiceUnavailable } from "../errors/Errors.ts"

/** Bounds on how many images are transferred at once. */
export interface TransferBounds {
  /** Per process. One owner has at most a quarter, so that nobody can starve all the others. */
  readonly concurrency: number
  /** How long a further one waits for its turn. */
  readonly patience: Duration.DurationInput
}

/**
 * Takes a turn for an owner (a client's address, an organization) until the scope closes.
 *
 * Errors: `rate_limit_exceeded` if the owner's own share stayed taken for too long, `service_unavailable` if all of
 * them did.
 */
export type TakeTurn = (owner: string) => Effect.Effect<void, RateLimitExceeded | ServiceUnavailable, Scope.Scope>

/**
 * Holds a permit until the scope closes. A separate fiber waits for it, so that a permit that comes too late is
 * released.
 */
const hold = (semaphore: Effect.Semaphore) =>
  Effect.gen(function* () {
    const held = yield* Deferred.make<void>()
    yield* Effect.forkScoped(semaphore.withPermits(1)(Effect.zipRight(Deferred.succeed(held, undefined), Effect.never)))
    yield* Deferred.await(held)
  })

/** Bounds transfers by these limits. */
export const makeTransfers = ({ concurrency, patience }: TransferBounds): Effect.Effect<TakeTurn> =>
  Effect.map(Effect.makeSemaphore(concurrency), (all) => {
    const shares = new Map<string, { readonly semaphore: Effect.Semaphore; owners: number }>()
    const share = Math.max(1, Math.floor(concurrency / 4))

    /** The owner's share, which exists while it is in use. */
    const shareOf = (owner: string) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          const known = shares.get(owner) ?? { semaphore: Effect.unsafeMakeSemaphore(share), owners: 0 }
          known.owners += 1
          shares.set(owner, known)
          return known
        }),
        (known) =>
          Effect.sync(() => {
            known.owners -= 1
            if (known.owners === 0) shares.delete(owner)
          })
      )

    return (owner) =>
      Effect.gen(function* () {
        const own = yield* shareOf(owner)
        yield* hold(own.semaphore).pipe(
          Effect.timeoutFail({
            duration: patience,
            onTimeout: () =>
              new RateLimitExceeded({ message: "Too many images at once; wait as long as Retry-After says." })
          })
        )
        yield* hold(all).pipe(
          Effect.timeoutFail({
            duration: patience,
            onTimeout: () => new ServiceUnavailable({ cause: "Too many images at once" })
          })
        )
      })
  })
