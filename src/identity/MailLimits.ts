import { createHash } from "node:crypto"
import { Duration, Effect } from "effect"
import { RateLimitExceeded, type ServiceUnavailable } from "../Errors.ts"
import type { OrganizationId } from "../kit/Ids.ts"
import type { RateLimits } from "../kit/RateLimit.ts"
import type { RateLimitPolicy } from "../kit/TokenBucket.ts"

/** Bounds on mail that anybody can have sent: nobody's mailbox is filled through the service, and no tenant mails the world. */

/** Sign-in links to one mailbox. */
export const signInLinkLimits = { perQuarterHour: 5, perDay: 30 } as const

/** Invitations of one organization, and to one mailbox by all organizations together. */
export const invitationLimits = {
  perOrganizationAndHour: 50,
  perOrganizationAndDay: 200,
  perMailboxAndDay: 20
} as const

interface MailLimit extends RateLimitPolicy {
  readonly bucket: string
  /** Whose limit it is, as a sentence for the caller. */
  readonly message: string
}

/**
 * The mailbox of an address: what follows a `+` is the owner's own note to themselves. Hashed, since a bucket is kept for
 * longer than its answer takes and need not say whose it is.
 */
const mailboxOf = (email: string): string => {
  const at = email.lastIndexOf("@")
  const local = email.slice(0, at)
  const tag = local.indexOf("+")
  const mailbox = `${tag < 1 ? local : local.slice(0, tag)}${email.slice(at)}`.toLowerCase()
  return createHash("sha256").update(mailbox).digest("base64url")
}

/** Takes from each in this order; what one refuses the ones before have counted. */
const takeFrom = (
  limits: RateLimits["Type"],
  all: ReadonlyArray<MailLimit>
): Effect.Effect<void, RateLimitExceeded | ServiceUnavailable> =>
  Effect.forEach(
    all,
    ({ bucket, message, ...policy }) =>
      Effect.catchTag(
        limits.take(bucket, policy),
        "BucketEmpty",
        ({ retryAfter }) =>
          new RateLimitExceeded({ message: `${message}; wait as long as Retry-After says.`, retryAfter })
      ),
    { discard: true }
  )

/** Takes a sign-in link to an address from its mailbox's limits. */
export const takeSignInLink = (limits: RateLimits["Type"], email: string) => {
  const { perDay, perQuarterHour } = signInLinkLimits
  const mailbox = mailboxOf(email)
  return takeFrom(limits, [
    {
      bucket: `sign-in-link:${mailbox}`,
      limit: perQuarterHour,
      per: Duration.minutes(15),
      message: `At most ${perQuarterHour} sign-in links are sent to one mailbox in 15 minutes`
    },
    {
      bucket: `sign-in-links-of-day:${mailbox}`,
      limit: perDay,
      per: Duration.days(1),
      message: `At most ${perDay} sign-in links are sent to one mailbox in a day`
    }
  ])
}

/** Takes an invitation from the limits of its organization and of the invited mailbox. */
export const takeInvitation = (limits: RateLimits["Type"], organizationId: OrganizationId, email: string) => {
  const { perMailboxAndDay, perOrganizationAndDay, perOrganizationAndHour } = invitationLimits
  return takeFrom(limits, [
    {
      bucket: `invitations:${organizationId}`,
      limit: perOrganizationAndHour,
      per: Duration.hours(1),
      message: `An organization sends at most ${perOrganizationAndHour} invitations in an hour`
    },
    {
      bucket: `invitations-of-day:${organizationId}`,
      limit: perOrganizationAndDay,
      per: Duration.days(1),
      message: `An organization sends at most ${perOrganizationAndDay} invitations in a day`
    },
    {
      bucket: `invitations-to:${mailboxOf(email)}`,
      limit: perMailboxAndDay,
      per: Duration.days(1),
      message: `At most ${perMailboxAndDay} invitations are sent to one mailbox in a day`
    }
  ])
}
