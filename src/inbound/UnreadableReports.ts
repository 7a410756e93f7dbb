import { Effect } from "effect"
import type { Environment } from "../events/Environment.ts"
import { translatedProviderTypes } from "../events/stripe/Translate.ts"
import type { OrganizationId } from "../kit/Ids.ts"
import { Metrics } from "../telemetry/Metrics.ts"
import { refundNewsTypes } from "./RefundNews.ts"

/** What could not be read of a signed notification, perhaps because the provider's next API version has moved it. */
export interface Unreadable {
  /**
   * - `event`: the notification itself; it is refused, and the provider sends it again
   * - `object`: its object, or the account that it is about: nothing was made of it
   * - `account`: the account as the provider shows it: no change of its status was reported
   * - `filters`: what some endpoint filters by; endpoints without such filters got their deliveries
   */
  readonly part: "event" | "object" | "account" | "filters"
  /** The paths of the fields that are missing or not as expected; never their values. */
  readonly reason: string
}

/** What is known about a notification that could not be read as a whole. */
export interface UnreadableReport extends Unreadable {
  readonly environment: Environment
  /** Null if the notification itself could not be read. */
  readonly providerEventId: string | null
  /** The provider's own type; null if the notification itself could not be read. */
  readonly type: string | null
  readonly organizationId: OrganizationId | null
  /** The provider's version that the payload was made for. */
  readonly apiVersion: string | null
}

const messages: Readonly<Record<Unreadable["part"], string>> = {
  event: "A notification of the provider could not be read and was refused: see the guide, Notifications can't be read",
  object: "A notification could not be read, so nothing was made of it: see the guide, Notifications can't be read",
  account: "An account could not be read, so its status was not told: see the guide, Notifications can't be read",
  filters: "What endpoints filter by could not be read, so they got nothing: see the guide, Notifications can't be read"
}

const knownTypes: ReadonlySet<string> = new Set([
  ...translatedProviderTypes,
  ...refundNewsTypes,
  "account.updated",
  "v1.account.updated",
  "v1.capability.updated",
  "v1.account.application.deauthorized"
])

/** One of few values, whatever the provider sends. */
const typeLabel = (type: string | null): string => {
  if (type === null) return ""
  if (knownTypes.has(type)) return type
  return type.startsWith("v2.core.account") ? "v2.core.account" : "other"
}

/**
 * Reports what could not be read where an operator sees it: as an error in the log and in the metrics, containing only
 * paths and names of the provider's.
 */
export const makeUnreadableReports: Effect.Effect<(report: UnreadableReport) => Effect.Effect<void>> = Effect.map(
  Metrics,
  (metrics) =>
    ({ part, ...report }) =>
      Effect.zipRight(
        Effect.sync(() =>
          metrics?.count("connected_payments.notification.unreadable.count", [
            report.environment,
            typeLabel(report.type),
            part
          ])
        ),
        Effect.logError(messages[part]).pipe(Effect.annotateLogs({ part, ...report }))
      )
)
