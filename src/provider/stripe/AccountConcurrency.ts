import { Effect } from "effect"

/**
 * Bounds the calls that run at once per name, so that one busy tenant does not use up the platform's rate limit at the
 * provider. Further calls wait for their turn, first come, first served.
 */
export const makeBoundedPerName = (bound: number) => {
  const inUse = new Map<string, { readonly semaphore: Effect.Semaphore; users: number }>()

  const enter = (name: string) => {
    const entry = inUse.get(name) ?? { semaphore: Effect.unsafeMakeSemaphore(bound), users: 0 }
    entry.users += 1
    inUse.set(name, entry)
    return entry
  }

  /** Removes a name that is no longer in use: there are as many names as tenants. */
  const leave = (name: string, entry: ReturnType<typeof enter>) => {
    entry.users -= 1
    if (entry.users === 0) {
      inUse.delete(name)
    }
  }

  return <A, E, R>(name: string, call: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.acquireUseRelease(
      Effect.sync(() => enter(name)),
      ({ semaphore }) => semaphore.withPermits(1)(call),
      (entry) => Effect.sync(() => leave(name, entry))
    )
}
