import { Schema } from "effect"
import { text } from "../platform/bounds/Text.ts"
import { described, uniqueArray } from "../platform/kit/Request.ts"

/** Schemas that the operations under `/identity` share. No server code. */

const label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"

/** The form that browsers accept in e-mail fields: no spaces, names, comments, quotes or line breaks. */
const emailForm = new RegExp(`^[A-Za-z0-9.!#$%&'*+/=?^_\`{|}~-]{1,64}@${label}(?:\\.${label})*$`)

/** An e-mail address: at most 254 characters; case is ignored. */
export const Email = text({
  max: 254,
  pattern: emailForm,
  rule: "must be an e-mail address of at most 254 characters, such as ana@example.com"
})
  .annotations({ description: "An e-mail address", examples: ["ana@example.com"] })
  .pipe(Schema.compose(Schema.Lowercase))

/** A one-time token from a mail. Anything else gets the same answer as a used token. */
export const OneTimeToken = Schema.Redacted(
  text({ min: 1, max: 256 }).annotations({
    description: "The token after the # in the mailed link"
  })
)

/** A member's role, which decides their rights (contract 2.7, 2.8). */
export const MemberRole = Schema.Literal("owner", "admin", "developer", "viewer").annotations({
  identifier: "MemberRole",
  description:
    "The person's role. Owners and admins enter every workspace, developers and viewers those granted to them; viewers only read"
})

export const InvitedRole = Schema.Literal("admin", "developer", "viewer").annotations({
  identifier: "Role",
  description: "What the person may do in the organization"
})
export type InvitedRole = typeof InvitedRole.Type

export const WorkspaceEnvironment = Schema.Literal("sandbox", "production").annotations({
  identifier: "Environment",
  description: "`sandbox` for tests, `production` for real money"
})

/** The recorded author of a change. An operator acts through the service's command line. */
export const AuthorShown = Schema.Struct({
  // Not a closed list: while two versions run side by side, one reads what the other has written
  kind: Schema.String.annotations({
    description: "`api_key`, `person`, `operator` or `provider`; a later version may add others",
    examples: ["api_key"]
  }),
  id: described(Schema.String, "The id of the key or person, or the operator's name")
}).annotations({ identifier: "Author" })

/** Who created something; null if it was created before this was recorded. */
export const CreatedBy = Schema.NullOr(AuthorShown).annotations({
  description: "Who created it; null if it was created before this was recorded"
})

export const Environments = uniqueArray(WorkspaceEnvironment, { max: 2 })
