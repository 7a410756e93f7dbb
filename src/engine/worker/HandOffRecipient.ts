import { Duration, Effect } from "effect"
import type { EndpointId } from "../../platform/kit/Ids.ts"
import type { Attempts } from "../attempts/Attempts.ts"
import { DeliveryUnderLease } from "../queue/Claim.ts"
import type { Recipient } from "../queue/Enqueue.ts"
import type { Claiming } from "./Claiming.ts"
import type { Begin, Held } from "./Held.ts"
import type { WorkerOptions } from "./Limits.ts"

interface HandOffParts {
  readonly options: Pick<WorkerOptions, "lease" | "concurrency">
  readonly attempts: Attempts
  readonly claiming: Claiming
  readonly held: Held
  readonly begin: Begin
  /** Runs an effect that never fails. */
  readonly run: (effect: Effect.Effect<void>) => void
}

/**
 * Takes over new deliveries as this process stores them, by the rules of claims: as many as there is room for, and as
 * many of an endpoint as its cap allows, or some more if it keeps up; but none of slow endpoints, and none while more
 * is due than claims have reached.
 */
export const handOffRecipient = ({ attempts, begin, claiming, held, options, run }: HandOffParts): Recipient => {
  const kept = new Map<EndpointId, number>()
  let keptInAll = 0

  const release = (endpointId: EndpointId): void => {
    const count = kept.get(endpointId) ?? 0
    if (count > 1) kept.set(endpointId, count - 1)
    else kept.delete(endpointId)
    keptInAll -= 1
    held.settle(1)
  }

  return {
    leaseMillis: Duration.toMillis(options.lease),
    reserve: (endpointId) => {
      const count = kept.get(endpointId) ?? 0
      const room = claiming.room - keptInAll
      if (claiming.isBehind || room < 1 || attempts.pace.isSlow(endpointId)) return false
      // Batches may wait here for their turn, as long as half of the places are left to other endpoints
      const most = room > options.concurrency / 2 ? attempts.mayHold(endpointId) : attempts.capOf(endpointId)
      if (attempts.held(endpointId) + count >= most) return false
      kept.set(endpointId, count + 1)
      keptInAll += 1
      // Counted as held from now on, so that a shutdown waits for the statement that stores it
      held.add(1)
      return true
    },
    release,
    take: (deliveries, { id: lease, leasedAt, storedAt }) => {
      const first = { attempt: 1, interrupted: 0, trigger: "automatic", createdAt: storedAt } as const
      const claim = { lease, claimedAt: storedAt }
      const claimed = deliveries.map((delivery) => new DeliveryUnderLease(delivery, delivery.secretIds, first, claim))
      // Places stay reserved until the attempts are counted: their destination may have to be loaded first
      const releaseAll = Effect.sync(() => {
        for (const { endpointId } of deliveries) release(endpointId)
      })
      run(Effect.ensuring(begin(claimed, leasedAt, "usual"), releaseAll))
    }
  }
}
