import { useState } from "preact/hooks"
import { call } from "../../api/Call.ts"
import { Dialog } from "../../components/Dialog.tsx"
import { RadioGroup, TextField } from "../../components/Field.tsx"
import { Form } from "../../components/Form.tsx"
import { invalidate, useSubmit } from "../../state/Query.ts"
import { type Environment, useSession } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { entersAll, roleLabels, roleWords } from "./roles.ts"
import { WorkspaceChoice } from "./Workspaces.tsx"

type InvitedRole = "admin" | "developer" | "viewer"

const InviteDialog = ({ onClose }: { readonly onClose: () => void }) => {
  const { organization } = useSession()
  const [email, setEmail] = useState("")
  const [role, setRole] = useState<InvitedRole>("developer")
  const [environments, setEnvironments] = useState<ReadonlyArray<Environment>>(["sandbox"])
  const { busy, error, submit } = useSubmit(
    () => call("invitations", "create", { payload: { email, role, ...(entersAll(role) ? {} : { environments }) } }),
    (invitation) => {
      invalidate("organization/invitations")
      toast(`An invitation is on its way to ${invitation.email}.`)
      onClose()
    }
  )
  // Only owners invite admins
  const offered: ReadonlyArray<InvitedRole> =
    organization.role === "owner" ? ["admin", "developer", "viewer"] : ["developer", "viewer"]
  return (
    <Dialog title="Invite a person" open onClose={onClose}>
      <Form
        onSubmit={submit}
        busy={busy}
        error={error}
        labels={{ email: "E-mail address", role: "Role", environments: "Workspaces" }}
        submit="Send the invitation"
        onCancel={onClose}
      >
        <TextField
          name="email"
          label="E-mail address"
          hint="The mail has a link, which works once, within 7 days."
          type="email"
          inputMode="email"
          maxLength={254}
          value={email}
          onChange={setEmail}
          required
        />
        <RadioGroup
          name="role"
          label="Role"
          value={role}
          onChange={setRole}
          options={offered.map((value) => ({ value, label: roleLabels[value], hint: `Can do: ${roleWords[value]}.` }))}
        />
        {entersAll(role) ? null : <WorkspaceChoice chosen={environments} onChange={setEnvironments} />}
      </Form>
    </Dialog>
  )
}

export const Invite = ({ onClose, open }: { readonly open: boolean; readonly onClose: () => void }) =>
  open ? <InviteDialog onClose={onClose} /> : null
