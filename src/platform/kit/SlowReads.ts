import { Context, Effect, Layer, Scope } from "effect"
import { RateLimitExceeded, ServiceUnavailable } from "../errors/Errors.ts"
import { makeFairSemaphore } from "./Concurrency.ts"
import type { Tenant } from "./Tenant.ts"

export interface SlowReadsOptions {
  /** The connections of this process: half of them are never used by slow reads. */
  readonly databasePoolSize: number
}

/**
 * Reads that may occupy a connection for seconds: searches of a long history, and counts. An organization runs few of
 * them at once in a process, and all organizations together leave connections free for notifications and changes.
 */
export class SlowReads extends Context.Tag("connected-payments/kit/SlowReads")<
  SlowReads,
  {
    /**
     * Runs a read when it is its organization's turn. It must not hold a connection already.
     *
     * Errors: `rate_limit_exceeded` if the organization's own reads took too long, `service_unavailable` if those of
     * all organizations did.
     */
    readonly inTurn: (
      tenant: Pick<Tenant, "organizationId">
    ) => <A, E, R>(read: Effect.Effect<A, E, R>) => Effect.Effect<A, E | RateLimitExceeded | ServiceUnavailable, R>
  }
>() {
  static readonly layer = (options: SlowReadsOptions): Layer.Layer<SlowReads> => Layer.effect(SlowReads, make(options))
}

const make = ({ databasePoolSize }: SlowReadsOptions) => {
  const concurrency = Math.max(1, Math.floor(databasePoolSize / 2))
  const share = Math.ceil(concurrency / 3)
  return Effect.map(
    makeFairSemaphore({
      concurrency,
      share,
      timeout: "2 seconds",
      onShareTaken: () =>
        new RateLimitExceeded({
          message: `The organization runs too many searches at once: at most ${share} of its searches and counts run at a time; wait as long as Retry-After says.`,
          retryAfter: "3 seconds"
        }),
      onAllTaken: () =>
        new ServiceUnavailable({
          cause: "As many searches and counts are under way as may use half of the connections"
        })
    }),
    (takePermit): SlowReads["Type"] => ({
      inTurn:
        ({ organizationId }) =>
        <A, E, R>(read: Effect.Effect<A, E, R>) =>
          Effect.acquireUseRelease(
            Scope.make(),
            (turn) => Effect.zipRight(Scope.extend(takePermit(organizationId), turn), read),
            (turn, exit) => Scope.close(turn, exit)
          )
    })
  )
}
