import { Duration } from "effect"
import { deliveryWindow } from "../queue/RetryPolicy.ts"

/**
 * How long a signing secret signs after a rotation has replaced it (contract 8.6), defined only here: as durations, as
 * SQL, and as a function of times.
 */

/** How long a replaced secret signs new events, together with its successor. */
export const rotationOverlap = Duration.hours(24)

const interval = (duration: Duration.Duration): string => `interval '${Duration.toHours(duration)} hours'`

/** SQL: until when the secret in row `s` signs new events; null for the current one. */
export const signsUntil = (s: string): string => `${s}.retired_at + ${interval(rotationOverlap)}`

/** SQL: whether the secret in row `s` has been replaced and still signs new events. */
export const isOverlapping = (s: string): string => `${s}.retired_at > now() - ${interval(rotationOverlap)}`

/** SQL: whether the secret in row `s` signs new events. */
export const signsNew = (s: string): string => `(${s}.retired_at IS NULL OR ${isOverlapping(s)})`

/** SQL: whether the secret in row `s` signs the delivery in row `d`. */
export const signsDelivery = (s: string, d: string): string => `(${signsNew(s)} OR ${d}.created_at < ${s}.retired_at)`

/** SQL: whether the delivery in row `d` is so old that its secrets may no longer sign it. */
export const mayBeUnsigned = (d: string): string => `${d}.created_at < now() - ${interval(rotationOverlap)}`

/** SQL: whether the secret in row `s` no longer signs new events. */
export const signsNoNew = (s: string): string => `${s}.retired_at < now() - ${interval(rotationOverlap)}`

/** SQL: whether the secret in row `s` no longer signs anything: no delivery queued before the rotation is left. */
export const hasEnded = (s: string): string => `${s}.retired_at < now() - ${interval(deliveryWindow)}`

/** SQL: whether the delivery in row `d` may still be sent, automatically or manually. */
export const mayStillBeSent = (d: string): string =>
  `(${d}.state = 'queued' OR ${d}.state = 'failed' AND ${d}.created_at > now() - ${interval(deliveryWindow)})`

/**
 * SQL: the ids of the secrets that sign new events of the endpoint in row `e`, the current one first, as JSON; null if
 * it has none. After several rotations within the overlap: the newest secret and its predecessor.
 */
export const signingSecretIds = (e: string): string => `(
  SELECT json_agg(id ORDER BY retired_at DESC NULLS FIRST) FROM (
    SELECT s.id, s.retired_at FROM payments.endpoint_secrets s
    WHERE s.organization_id = ${e}.organization_id AND s.environment = ${e}.environment AND s.endpoint_id = ${e}.id
      AND ${signsNew("s")}
    ORDER BY s.retired_at DESC NULLS FIRST LIMIT 2) AS newest)`

/**
 * SQL: whether any secret signs new events of the endpoint in row `e`. After its master key was lost, none does until
 * its secret is rotated, and nothing new can be sent to it.
 */
export const canSign = (e: string): string => `EXISTS (
  SELECT 1 FROM payments.endpoint_secrets s
  WHERE s.organization_id = ${e}.organization_id AND s.environment = ${e}.environment AND s.endpoint_id = ${e}.id
    AND ${signsNew("s")})`

/** When a delivery was queued and when it was claimed, in Unix milliseconds by the database's clock. */
interface DeliveryTimes {
  readonly createdAt: number
  readonly claimedAt: number
}

const overlapMillis = Duration.toMillis(rotationOverlap)

/** Whether a secret signs a delivery; `retiredAt` in Unix milliseconds, null for the current one. */
export const signs = (retiredAt: number | null, { claimedAt, createdAt }: DeliveryTimes): boolean =>
  retiredAt === null || retiredAt > claimedAt - overlapMillis || createdAt < retiredAt
