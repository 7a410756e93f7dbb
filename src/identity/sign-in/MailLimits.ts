import { createHash } from "node:crypto"
import { Duration, Effect } from "effect"
import { RateLimitExceeded, type ServiceUnavailable } from "../../platform/errors/Errors.ts"
import type { OrganizationId } from "../../platform/kit/Ids.ts"
import type { RateLimits } from "../../platform/kit/RateLimit.ts"
import type { Author } from "../../platform/kit/Tenant.ts"

/** Limits on mail that anybody can trigger: the service must neither fill a mailbox nor send mass mail for a tenant. */

/**
 * How many sign-in links one client may request for a mailbox, how many one address gets, and how many all other
 * spellings of the mailbox get together.
 *
 * Strangers in many networks can use up an address's limit, but lock nobody out: at this many a day, one becomes
 * available every 14 minutes, so whoever is refused has a link that is still valid. Other spellings are other persons
 * to the service: they share a limit, except for addresses of known persons, which then have limits of their own.
 */
export const signInLinkLimits = {
  perClientAndQuarterHour: 5,
  perClientAndDay: 30,
  perQuarterHour: 10,
  perDay: 100
} as const

/**
 * How many invitations one organization, one of its inviters, and one organization to one mailbox may send. These
 * limits are not shared: only organizations that nobody vouches for, which anybody can create, share a limit per
 * mailbox.
 */
export const invitationLimits = {
  perOrganizationAndHour: 50,
  perOrganizationAndDay: 200,
  perInviterAndHour: 30,
  perOrganizationAndMailboxAndDay: 5,
  perMailboxAndDay: 20
} as const

const periods = { "15 minutes": Duration.minutes(15), "an hour": Duration.hours(1), "a day": Duration.days(1) }

interface MailLimit {
  readonly bucket: string
  readonly limit: number
  readonly period: keyof typeof periods
  readonly message: string
}

/** Hosts of the provider that ignores dots in the local part. */
const dotless: ReadonlySet<string> = new Set(["gmail.com", "googlemail.com"])

/** The address of a mailbox, without a tag after `+`, and without dots if the provider ignores them. */
const plainAddress = (email: string): string => {
  const at = email.lastIndexOf("@")
  const tagged = email.slice(0, at).toLowerCase()
  const host = email.slice(at + 1).toLowerCase()
  const tag = tagged.indexOf("+")
  const local = tag < 1 ? tagged : tagged.slice(0, tag)
  return dotless.has(host) ? `${local.replaceAll(".", "")}@gmail.com` : `${local}@${host}`
}

/** Hashed, since a bucket outlives the request and need not reveal the address. */
const hashed = (address: string): string => createHash("sha256").update(address).digest("base64url")

const mailboxOf = (email: string): string => hashed(plainAddress(email))

/** Takes from each limit in order. If one refuses, those before it have still counted the mail. */
const takeFrom = (
  limits: RateLimits["Type"],
  all: ReadonlyArray<MailLimit>
): Effect.Effect<void, RateLimitExceeded | ServiceUnavailable> =>
  Effect.forEach(
    all,
    ({ bucket, limit, message, period }) =>
      Effect.catchTag(
        limits.take(bucket, { limit, per: periods[period] }),
        "BucketEmpty",
        ({ retryAfter }) =>
          new RateLimitExceeded({ message: `${message}; wait as long as Retry-After says.`, retryAfter })
      ),
    { discard: true }
  )

/**
 * Counts a sign-in link against its mailbox's limits. Returns whether to mail it: other spellings of a mailbox share a limit
 * that strangers can use up, and beyond it only a person's own address gets links. The caller is not told, so that nobody
 * learns which addresses are known.
 *
 * @param link.client the requesting client's network
 * @param link.isKnown whether the exact address is a person's
 */
export const takeSignInLink = (
  limits: RateLimits["Type"],
  link: {
    readonly email: string
    readonly client: string
    readonly isKnown: Effect.Effect<boolean, ServiceUnavailable>
  }
): Effect.Effect<boolean, RateLimitExceeded | ServiceUnavailable> => {
  const { perClientAndDay, perClientAndQuarterHour, perDay, perQuarterHour } = signInLinkLimits
  const mailbox = mailboxOf(link.email)
  const address = link.email.toLowerCase()
  const links = (limit: number, period: "15 minutes" | "a day", whose: string, message: string): MailLimit => ({
    bucket: `sign-in-links:${period}:${whose}`,
    limit,
    period,
    message: `At most ${limit} sign-in links are sent to one mailbox in ${period}${message}`
  })
  const ofClient = ["of-client", mailbox, link.client].join(":")
  const takeClients = takeFrom(limits, [
    links(perClientAndQuarterHour, "15 minutes", ofClient, " for one network"),
    links(perClientAndDay, "a day", ofClient, " for one network")
  ])
  const latest = "; the latest one in it may still be valid"
  const take = (whose: string) =>
    takeFrom(limits, [links(perQuarterHour, "15 minutes", whose, latest), links(perDay, "a day", whose, latest)])
  const isLeft = (whose: string) =>
    Effect.as(take(whose), true).pipe(Effect.catchTag("RateLimitExceeded", () => Effect.succeed(false)))
  const ofAddress = `of-address:${hashed(address)}`
  // The limit that others share comes last: clients beyond their own limits take nothing from it
  return Effect.zipRight(
    takeClients,
    address === plainAddress(link.email)
      ? Effect.as(take(ofAddress), true)
      : Effect.flatMap(isLeft(`of-others:${mailbox}`), (left) =>
          left
            ? Effect.succeed(true)
            : Effect.flatMap(link.isKnown, (known) => (known ? isLeft(ofAddress) : Effect.succeed(false)))
        )
  )
}

export const takeInvitation = (
  limits: RateLimits["Type"],
  invitation: {
    readonly organizationId: OrganizationId
    readonly author: Author
    readonly email: string
    readonly vouched: boolean
  }
) => {
  const { author, email, organizationId, vouched } = invitation
  const mailbox = mailboxOf(email)
  const sends = (limit: Omit<MailLimit, "message">, who = "An organization", to = ""): MailLimit => ({
    ...limit,
    message: `${who} sends at most ${limit.limit} invitations${to} in ${limit.period}`
  })
  const { perInviterAndHour, perMailboxAndDay, perOrganizationAndDay, perOrganizationAndHour } = invitationLimits
  const perInviter: Omit<MailLimit, "message"> = {
    bucket: `invitations-by:${organizationId}:${author.kind}:${author.id}`,
    limit: perInviterAndHour,
    period: "an hour"
  }
  const perMailbox: Omit<MailLimit, "message"> = {
    bucket: `invitations-of:${organizationId}:to:${mailbox}`,
    limit: invitationLimits.perOrganizationAndMailboxAndDay,
    period: "a day"
  }
  const shared: MailLimit = {
    bucket: `invitations-to:${mailbox}`,
    limit: perMailboxAndDay,
    period: "a day",
    message: `At most ${perMailboxAndDay} invitations are sent to one mailbox in a day by organizations that neither have an account linked by the operator nor take real payments`
  }
  return takeFrom(limits, [
    sends(perInviter, "One person"),
    sends(perMailbox, undefined, " to one mailbox"),
    sends({ bucket: `invitations:${organizationId}`, limit: perOrganizationAndHour, period: "an hour" }),
    sends({ bucket: `invitations-of-day:${organizationId}`, limit: perOrganizationAndDay, period: "a day" }),
    // The shared limit comes last: senders beyond their own limits take nothing from it
    ...(vouched ? [] : [shared])
  ])
}
