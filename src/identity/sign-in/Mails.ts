import { Redacted } from "effect"
import type { OrganizationId } from "../../kit/Ids.ts"
import type { Mail } from "../../kit/Mailer.ts"
import { unlinked } from "../organizations/OrganizationName.ts"
import type { InvitedRole } from "../Schemas.ts"

/**
 * The mails of this slice: what for, how long it holds, and what to do with one that was not expected.
 *
 * A link carries its token behind the `#`, which browsers keep to themselves: it comes into no log of ours or of a
 * proxy, and opening the link uses nothing up, so that scanners of mail may.
 */

/** Minutes that a sign-in link holds. */
export const signInMinutes = 15

/** Days that an invitation holds. */
export const invitationDays = 7

/** Where the links lead: the pages that these paths serve redeem their token when a button is pressed. */
export const linkPaths = { signIn: "/identity/sign-in", invitation: "/identity/invitation" } as const

const linkTo = (publicUrl: string, path: string, token: Redacted.Redacted) =>
  `${publicUrl}${path}#${Redacted.value(token)}`

export const signInMail = (options: {
  readonly publicUrl: string
  readonly to: string
  readonly token: Redacted.Redacted
}): Mail => ({
  to: options.to,
  subject: "Your sign-in link",
  text: `Open this link to sign in to connected-payments:

${linkTo(options.publicUrl, linkPaths.signIn, options.token)}

It works once, within ${signInMinutes} minutes. Pass it on to nobody: it signs in whoever opens it.

You did not ask to sign in? Then ignore this mail; nothing happens without the link.
`
})

export const invitationMail = (options: {
  readonly publicUrl: string
  readonly to: string
  readonly token: Redacted.Redacted
  readonly organizationId: OrganizationId
  /** The organization's name. */
  readonly organization: string
  readonly role: InvitedRole
  /** Who invites; null for the operator. */
  readonly inviter: string | null
}): Mail => ({
  to: options.to,
  sender: options.organizationId,
  // Without the name, which strangers chose: a subject is read before it is clear whose mail it is
  subject: "Invitation to an organization on connected-payments",
  text: `${options.inviter ?? "The operator"} invites you to an organization on connected-payments, with the role ${options.role}.

The organization's name, which its owner chose:

    ${unlinked(options.organization)}

Open this link to accept and to sign in:

${linkTo(options.publicUrl, linkPaths.invitation, options.token)}

It works once, within ${invitationDays} days. Pass it on to nobody: it signs in whoever opens it.

You did not expect this? Then ignore this mail; without the link you are not a member.
`
})
