import { Effect, Fiber } from "effect"

/**
 * Limits concurrent calls per name with a semaphore, so that one busy tenant does not use up the platform's rate limit
 * at the provider. Further calls wait, first come, first served. A caller interrupted while waiting gives up its place.
 * A later interrupt does not end the call at the provider, so the permit is held until the call ends.
 */
export const makeBoundedPerName = (bound: number) => {
  const inUse = new Map<string, { readonly semaphore: Effect.Semaphore; users: number }>()

  const enter = (name: string) => {
    const entry = inUse.get(name) ?? { semaphore: Effect.unsafeMakeSemaphore(bound), users: 0 }
    entry.users += 1
    inUse.set(name, entry)
    return entry
  }

  /** Removes a name that is no longer in use, since there are as many names as tenants. */
  const leave = (name: string, entry: ReturnType<typeof enter>) => {
    entry.users -= 1
    if (entry.users === 0) {
      inUse.delete(name)
    }
  }

  return <A, E, R>(name: string, call: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.suspend(() => {
        const entry = enter(name)
        const { semaphore } = entry
        const left = Effect.sync(() => leave(name, entry))
        return restore(semaphore.take(1)).pipe(
          Effect.onInterrupt(() => left),
          // In a separate fiber, since the call continues after its caller was interrupted
          Effect.zipRight(Effect.forkDaemon(Effect.ensuring(call, Effect.zipRight(semaphore.release(1), left)))),
          Effect.flatMap((running) => restore(Fiber.join(running)))
        )
      })
    )
}
