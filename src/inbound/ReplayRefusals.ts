import { Effect } from "effect"
import type { Decision } from "./Decision.ts"
import { ReplayRefused } from "./Receipt.ts"

/** Reasons why an event can't be replayed. */

const refusals = {
  wrong_mode: "The event is from the provider's other mode: nothing may be created from it",
  account_not_linked: "The event's account is not linked and connected in this environment",
  another_organization: "The event's account is linked to another organization by now",
  deliveries_expired:
    "The event was delivered, and its deliveries are no longer kept: it could reach an endpoint twice",
  event_expired: "The provider does not have the event any more; it keeps events for 30 days"
} as const

export const refuse = (reason: keyof typeof refusals, cause?: unknown) =>
  new ReplayRefused({ reason, message: refusals[reason], ...(cause === undefined ? {} : { cause }) })

/** Refuses an unreadable event and stores nothing: a later version may be able to read it. */
export const refuseUnreadable = (why: string) =>
  new ReplayRefused({ reason: "malformed", message: `This version can't read the event either: ${why}` })

export const requireReadable = (decision: Decision): Effect.Effect<Decision, ReplayRefused> =>
  decision.outcome === "malformed"
    ? Effect.fail(refuseUnreadable(decision.unreadable?.reason ?? "its object"))
    : Effect.succeed(decision)
