import { call } from "../../api/Call.ts"
import { FormDialog } from "../../components/Dialog.tsx"
import { useFields } from "../../components/Draft.ts"
import { TextField } from "../../components/Field.tsx"
import { useSubmit } from "../../state/Query.ts"
import { type Environment, useSession } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { entersAll, type Role } from "./roles.ts"
import { RoleChoice, WorkspaceChoice } from "./Workspaces.tsx"

const sandboxOnly: ReadonlyArray<Environment> = ["sandbox"]
const empty = { email: "", role: "developer" as Exclude<Role, "owner">, environments: sandboxOnly }

export const Invite = ({ onClose }: { readonly onClose: () => void }) => {
  const { organization } = useSession()
  const { draft, field } = useFields(empty)
  const { email, environments, role } = draft
  const submission = useSubmit(
    () => call("invitations", "create", { payload: { email, role, ...(entersAll(role) ? {} : { environments }) } }),
    (invitation) => {
      toast(`An invitation is on its way to ${invitation.email}.`)
      onClose()
    }
  )
  // Only owners invite admins
  const admins: ReadonlyArray<"admin"> = organization.role === "owner" ? ["admin"] : []
  return (
    <FormDialog title="Invite a person" submission={submission} submit="Send the invitation" onClose={onClose}>
      <TextField
        {...field("email")}
        label="E-mail address"
        hint="The mail has a link, which works once, within 7 days."
        type="email"
        inputMode="email"
        maxLength={254}
        required
      />
      <RoleChoice {...field("role")} offered={[...admins, "developer", "viewer"]} />
      {entersAll(role) ? null : <WorkspaceChoice {...field("environments")} />}
    </FormDialog>
  )
}
