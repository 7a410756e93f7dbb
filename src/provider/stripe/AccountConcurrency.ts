import { Effect, Fiber } from "effect"

/**
 * Bounds the calls that run at once per name, so that one busy tenant does not use up the platform's rate limit at the
 * provider. Further calls wait for their turn, first come, first served. A caller who leaves while it waits gives up its
 * place. One who leaves later does not end the call at the provider, so the turn ends with the call.
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
    Effect.uninterruptibleMask((restore) =>
      Effect.suspend(() => {
        const entry = enter(name)
        const { semaphore } = entry
        const left = Effect.sync(() => leave(name, entry))
        return restore(semaphore.take(1)).pipe(
          Effect.onInterrupt(() => left),
          // In a fiber of its own, since the call is still under way when its caller has left
          Effect.zipRight(Effect.forkDaemon(Effect.ensuring(call, Effect.zipRight(semaphore.release(1), left)))),
          Effect.flatMap((running) => restore(Fiber.join(running)))
        )
      })
    )
}
