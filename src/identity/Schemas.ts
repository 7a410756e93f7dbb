import { Schema } from "effect"
import { text } from "../bounds/Text.ts"
import { uniqueArray } from "../kit/Request.ts"

/** What the operations under `/identity` share. Holds no server code. */

const label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"

/** The form that browsers take in e-mail fields: no blanks, names, comments, quotes or line breaks. */
const emailForm = new RegExp(`^[A-Za-z0-9.!#$%&'*+/=?^_\`{|}~-]{1,64}@${label}(?:\\.${label})*$`)

/** An e-mail address: at most 254 characters; capitals are no difference. */
export const Email = text({
  max: 254,
  pattern: emailForm,
  rule: "must be an e-mail address of at most 254 characters, such as ana@example.com"
})
  .annotations({ description: "An e-mail address", examples: ["ana@example.com"] })
  .pipe(Schema.compose(Schema.Lowercase))

/** A one-time token out of a mail. What is no token of ours is answered like one that was used. */
export const OneTimeToken = Schema.Redacted(
  text({ min: 1, max: 256 }).annotations({
    description: "What follows the # in the mailed link"
  })
)

/** What a member may do (contract 2.7, 2.8). */
export const MemberRole = Schema.Literal("owner", "admin", "developer", "viewer").annotations({
  identifier: "MemberRole",
  description: "Owners and admins enter every workspace; developers and viewers those granted to them; viewers read"
})

/** Roles that an invitation can give. */
export const InvitedRole = Schema.Literal("admin", "developer", "viewer")
export type InvitedRole = typeof InvitedRole.Type

export const WorkspaceEnvironment = Schema.Literal("sandbox", "production")

/** Who is on record as the author of a change. An operator acts at the service's own console. */
export const AuthorShown = Schema.Struct({
  kind: Schema.Literal("api_key", "person", "operator", "provider"),
  id: Schema.String
})

/** Who created something; null where it is older than the record of it. */
export const CreatedBy = Schema.NullOr(AuthorShown).annotations({
  description: "Who created it; null where it was created before this was recorded"
})

/** The environments whose workspaces a member may enter, each once. */
export const Environments = uniqueArray(WorkspaceEnvironment, { max: 2 })
