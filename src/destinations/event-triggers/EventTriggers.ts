import { Clock, Effect, Option } from "effect"
import type { Envelope, EventType } from "../../events/Catalog.ts"
import { encodeEnvelope } from "../../events/Envelope.ts"
import { syntheticEvent } from "../../events/Synthetic.ts"
import type { PrincipalShape } from "../../identity/Principal.ts"
import { Accounts } from "../../payments/Accounts.ts"
import { ProviderTriggers } from "../../payments/ProviderTriggers.ts"
import { ProviderAccountNotConnected, TestEnvironmentRequired } from "../../platform/errors/Errors.ts"
import { makeAudit } from "../../platform/kit/Audit.ts"
import { Idempotency } from "../../platform/kit/Idempotency.ts"
import { newId } from "../../platform/kit/Ids.ts"
import { service } from "../../platform/kit/Service.ts"
import { makeSyntheticTestsRepo } from "../publishing/SyntheticTestsRepo.ts"
import type { TriggeredEvent } from "./Api.ts"

/** A trigger's outcome; a synthetic event is stored together with the answer. */
interface Outcome {
  readonly type: EventType
  readonly synthetic: Envelope | null
}

const make = Effect.gen(function* () {
  const repo = yield* makeSyntheticTestsRepo
  const accounts = yield* Accounts
  const idempotency = yield* Idempotency
  const triggerAtProvider = yield* ProviderTriggers
  const audit = yield* makeAudit

  const record = Effect.fnUntraced(function* (principal: PrincipalShape, { synthetic, type }: Outcome) {
    if (synthetic !== null) {
      const event = { id: synthetic.id, type, payload: encodeEnvelope(synthetic), matching: [] }
      yield* repo.insertUndelivered(principal, event, new Date(yield* Clock.currentTimeMillis))
    }
    yield* audit({ ...principal, action: "event.triggered", targetType: "event_type", targetId: type })
  })

  const perform = Effect.fnUntraced(function* (principal: PrincipalShape, type: EventType) {
    const account = yield* accounts.show(principal)
    if (Option.isNone(account) || account.value.status !== "connected") {
      return yield* new ProviderAccountNotConnected()
    }
    if (yield* triggerAtProvider(account.value.accountId, type)) {
      return { type, synthetic: null }
    }
    const synthetic = syntheticEvent({
      organizationId: principal.organizationId,
      testId: yield* newId,
      createdAt: new Date(yield* Clock.currentTimeMillis),
      type
    })
    return { type, synthetic }
  })

  return {
    /** Triggers an event under an `Idempotency-Key`. Returns a `TriggeredEvent`. Audited. */
    trigger: Effect.fn("EventTriggers.trigger")(function* (principal: PrincipalShape, key: string, type: EventType) {
      if (principal.environment !== "sandbox") {
        return yield* new TestEnvironmentRequired({ message: "Events are triggered in the sandbox only." })
      }
      return yield* idempotency.run(
        {
          tenant: principal,
          key,
          operation: "event_triggers.create",
          parameters: { type },
          encode: ({ synthetic, type }: Outcome): TriggeredEvent => ({
            type,
            origin: synthetic === null ? "provider" : "synthetic",
            eventId: synthetic?.id ?? null
          }),
          onSuccess: (outcome) => record(principal, outcome)
        },
        () => perform(principal, type)
      )
    })
  }
})

export class EventTriggers extends service<EventTriggers>()("connected-payments/destinations/EventTriggers", make) {}
