import { Effect } from "effect"
import { translatedProviderTypes } from "../events/stripe/Translate.ts"
import type { Environment } from "../platform/kit/Environment.ts"
import type { OrganizationId } from "../platform/kit/Ids.ts"
import { Metrics } from "../platform/telemetry/Metrics.ts"
import { refundNewsTypes } from "./RefundNews.ts"

/** The unreadable part of a signed notification; perhaps the provider's next API version has moved it. */
export interface Unreadable {
  /**
   * - `event`: the notification itself; it is refused, and the provider sends it again
   * - `object`: its object, or the account that it is about: it led to nothing
   * - `account`: the account as returned by the provider: no change of its status was reported
   * - `filters`: fields that some endpoint filters by; endpoints without such filters got their deliveries
   */
  readonly part: "event" | "object" | "account" | "filters"
  /** The paths of the fields that are missing or invalid; never their values. */
  readonly reason: string
}

/** An unreadable part, with the known facts about its notification. */
export interface UnreadableReport extends Unreadable {
  readonly environment: Environment
  /** Null if the notification itself could not be read. */
  readonly providerEventId: string | null
  /** The provider's event type; null if the notification itself could not be read. */
  readonly type: string | null
  readonly organizationId: OrganizationId | null
  /** The provider's API version of the payload. */
  readonly apiVersion: string | null
}

const messages: Readonly<Record<Unreadable["part"], string>> = {
  event: "A notification of the provider could not be read and was refused: see the guide, Notifications can't be read",
  object: "A notification could not be read, so it created no event: see the guide, Notifications can't be read",
  account: "An account could not be read, so no event reported its status: see the guide, Notifications can't be read",
  filters:
    "The fields that endpoints filter by could not be read, so they got nothing: see the guide, Notifications can't be read"
}

const knownTypes: ReadonlySet<string> = new Set([
  ...translatedProviderTypes,
  ...refundNewsTypes,
  "account.updated",
  "v1.account.updated",
  "v1.capability.updated",
  "v1.account.application.deauthorized"
])

/** Maps a type to one of few values, whatever the provider sends. */
const typeLabel = (type: string | null): string => {
  if (type === null) return ""
  if (knownTypes.has(type)) return type
  return type.startsWith("v2.core.account") ? "v2.core.account" : "other"
}

/**
 * Reports unreadable parts to operators: as an error in the log and in the metrics, containing only field paths and the
 * provider's names.
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
