import { Deferred, type Duration, Effect, type Scope } from "effect"

/** The bounds of a fair semaphore. */
export interface FairSemaphoreOptions<Own, All> {
  /** Permits per process. */
  readonly concurrency: number
  /** The maximum number of one owner's permits, so that nobody can starve all the others. */
  readonly share: number
  /** How long a caller waits for each permit. */
  readonly patience: Duration.DurationInput
  /** The failure if the owner's own share stayed taken for too long. */
  readonly onShareTaken: () => Own
  /** The failure if all permits stayed taken for too long. */
  readonly onAllTaken: () => All
}

/** Holds a permit for an owner (a client's address, an organization) until the scope closes. */
export type TakePermit<E> = (owner: string) => Effect.Effect<void, E, Scope.Scope>

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

/** A semaphore that many owners share within these bounds. */
export const makeFairSemaphore = <Own, All>({
  concurrency,
  onAllTaken,
  onShareTaken,
  patience,
  share
}: FairSemaphoreOptions<Own, All>): Effect.Effect<TakePermit<Own | All>> =>
  Effect.map(Effect.makeSemaphore(concurrency), (all) => {
    const shares = new Map<string, { readonly semaphore: Effect.Semaphore; users: number }>()

    /** The owner's share, which exists while it is in use. */
    const shareOf = (owner: string) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          const known = shares.get(owner) ?? { semaphore: Effect.unsafeMakeSemaphore(share), users: 0 }
          known.users += 1
          shares.set(owner, known)
          return known
        }),
        (known) =>
          Effect.sync(() => {
            known.users -= 1
            if (known.users === 0) shares.delete(owner)
          })
      )

    return (owner) =>
      Effect.gen(function* () {
        const own = yield* shareOf(owner)
        yield* Effect.timeoutFail(hold(own.semaphore), { duration: patience, onTimeout: onShareTaken })
        yield* Effect.timeoutFail(hold(all), { duration: patience, onTimeout: onAllTaken })
      })
  })
