import { Effect, Layer, Schedule } from "effect"
import { Deliveries } from "./deliveries/Deliveries.ts"
import { Retention } from "./deliveries/Retention.ts"
import { Endpoints } from "./endpoints/Endpoints.ts"
import { Sessions } from "./identity/Sessions.ts"
import { SignIn } from "./identity/SignIn.ts"
import { Receipts } from "./inbound/Receipts.ts"
import { AuditRetention } from "./kit/AuditRetention.ts"
import { Idempotency } from "./kit/Idempotency.ts"
import { RateLimits } from "./kit/RateLimit.ts"

/** How often what has outlived its time is removed. */
const interval = "10 minutes"

/**
 * Removes what has outlived its time: ended sessions, sign-in tokens, idempotency keys after their 24 hours, rate limits
 * that are full again, rotated signing secrets, receipts, audit records, deliveries and payloads after their retention.
 * Every process may do it: what one has removed the others don't find.
 */
export const housekeepingLayer: Layer.Layer<
  never,
  never,
  Sessions | SignIn | Idempotency | RateLimits | Receipts | AuditRetention | Endpoints | Deliveries | Retention
> = Layer.scopedDiscard(
  Effect.gen(function* () {
    const tasks = {
      sessions: (yield* Sessions).clean,
      "sign-in tokens": (yield* SignIn).clean,
      "idempotency keys": (yield* Idempotency).clean,
      "rate limits": (yield* RateLimits).clean,
      receipts: (yield* Receipts).clean,
      "audit records": (yield* AuditRetention).clean,
      "rotated secrets": (yield* Endpoints).clean,
      "bindings to ended secrets": (yield* Deliveries).rebind,
      // Last, since it may take long
      deliveries: (yield* Retention).clean
    }
    const all = Effect.forEach(Object.entries(tasks), ([name, clean]) =>
      Effect.catchAllCause(clean, (cause) =>
        Effect.logWarning(`Old ${name} were not removed; the next round will`, cause)
      )
    )
    yield* all.pipe(
      Effect.repeat(Schedule.spaced(interval).pipe(Schedule.jittered)),
      Effect.withTracerEnabled(false),
      Effect.forkScoped
    )
  })
)
