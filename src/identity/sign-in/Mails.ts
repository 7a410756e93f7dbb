import { Redacted } from "effect"
import type { OrganizationId } from "../../platform/kit/Ids.ts"
import type { Mail } from "../../platform/kit/Mailer.ts"
import { unlinked } from "../organizations/OrganizationName.ts"
import type { InvitedRole } from "../Schemas.ts"

/**
 * The mails of this slice. Each says what it is for, how long its link is valid, and what to do if it was not expected.
 *
 * A link carries its token after the `#`, which browsers do not send: it appears in no log, ours or a proxy's, and
 * opening the link does not use it, so mail scanners may open it.
 */

export const signInMinutes = 15

export const invitationDays = 7

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
  readonly organization: string
  readonly role: InvitedRole
  /** The inviter's e-mail address; null for the operator. */
  readonly inviter: string | null
}): Mail => ({
  to: options.to,
  sender: options.organizationId,
  // Without the organization's name, which strangers chose: people read a subject before they know the sender
  subject: "Invitation to an organization on connected-payments",
  // Mail programs might turn the address into another link
  text: `${options.inviter === null ? "The operator" : unlinked(options.inviter)} invites you to an organization on connected-payments, with the role ${options.role}.

The organization's name, which its owner chose:

    ${unlinked(options.organization)}

Open this link to accept and to sign in:

${linkTo(options.publicUrl, linkPaths.invitation, options.token)}

It works once, within ${invitationDays} days. Pass it on to nobody: it signs in whoever opens it.

You did not expect this? Then ignore this mail; without the link you are not a member.
`
})
