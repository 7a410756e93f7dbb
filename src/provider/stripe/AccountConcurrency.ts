import { Effect } from "effect"

/**
 * Bounds how many calls run at once per name: one busy tenant does not use up the platform's rate at the provider for
 * all others. Calls beyond the bound wait for their turn, first come first served.
 */
export const makeBoundedPerName = (bound: number) => {
  const inUse = new Map<string, { readonly semaphore: Effect.Semaphore; users: number }>()

  const enter = (name: string) => {
    const entry = inUse.get(name) ?? { semaphore: Effect.unsafeMakeSemaphore(bound), users: 0 }
    entry.users += 1
    inUse.set(name, entry)
    return entry
  }

  /** Nothing is kept of names that nobody uses: there are as many as tenants. */
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
