import { Deferred, Effect } from "effect"

/**
 * Has those who ask for the same at the same time share one answer, so that a caller who asks again and again for something
 * that takes long occupies no more than a caller who asks once. Who comes while an answer is being found gets that one,
 * which may be as old as it takes. Nobody's interruption ends it for the others.
 */
export const makeShared = <A, E>(): ((key: string, effect: Effect.Effect<A, E>) => Effect.Effect<A, E>) => {
  /** The answers that are being found, by key: at most as many as there are requests. */
  const underWay = new Map<string, Deferred.Deferred<A, E>>()
  return (key, effect) =>
    // An interruption between the note and the fork would leave a note of an answer that nobody finds
    Effect.uninterruptibleMask((restore) =>
      Effect.withFiberRuntime((fiber) => {
        const known = underWay.get(key)
        if (known !== undefined) return restore(Deferred.await(known))
        const answer = Deferred.unsafeMake<A, E>(fiber.id())
        underWay.set(key, answer)
        const found = Effect.ensuring(
          Effect.interruptible(effect),
          Effect.sync(() => underWay.delete(key))
        )
        return Effect.zipRight(Effect.forkDaemon(Effect.intoDeferred(found, answer)), restore(Deferred.await(answer)))
      })
    )
}
