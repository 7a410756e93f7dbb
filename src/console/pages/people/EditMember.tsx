import { useState } from "preact/hooks"
import { type AnswerOf, call } from "../../api/Call.ts"
import { Confirm, Dialog } from "../../components/Dialog.tsx"
import { Checkbox, RadioGroup } from "../../components/Field.tsx"
import { Form } from "../../components/Form.tsx"
import { invalidate, useSubmit } from "../../state/Query.ts"
import { type Environment, sessionChanged, useSession } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { memberChanges } from "./memberChanges.ts"
import { entersAll, type Role, roleLabels, roles, roleWords } from "./roles.ts"
import { WorkspaceChoice } from "./Workspaces.tsx"

export type Member = AnswerOf<"members", "list">["data"][number]

interface Props {
  readonly member: Member
  readonly onClose: () => void
}

/** After a change of a membership: invalidates the lists and, for one's own membership, reloads the session. */
const useChanged = (personId: string) => {
  const { person } = useSession()
  return () => {
    invalidate("organization/")
    invalidate("sandbox/keys")
    invalidate("production/keys")
    if (personId === person.id) void sessionChanged()
  }
}

const KeepKeys = (props: { readonly keep: boolean; readonly onChange: (keep: boolean) => void }) => (
  <Checkbox
    name="keep_keys"
    label="Keep the API keys that they created"
    hint="Otherwise those that they could no longer create are revoked, and programs that use them are refused."
    checked={props.keep}
    onChange={props.onChange}
  />
)

/** Changes a member's role and workspaces. */
export const EditMember = ({ member, onClose }: Props) => {
  const { organization, person } = useSession()
  const isSelf = member.personId === person.id
  // The form's initial values
  const [before] = useState(member)
  const [role, setRole] = useState<Role>(member.role)
  const [environments, setEnvironments] = useState<ReadonlyArray<Environment>>(member.environments)
  const [keep, setKeep] = useState(false)
  const changed = useChanged(member.personId)
  const changes = memberChanges(before, { role, environments })
  const { busy, error, submit } = useSubmit(
    () =>
      call("members", "update", {
        path: { personId: member.personId },
        ...(keep ? { urlParams: { keep_keys: true } } : {}),
        payload: changes
      }),
    () => {
      changed()
      toast(`${member.email} is changed.`)
      onClose()
    }
  )
  const offered = organization.role === "owner" ? roles : roles.filter((one) => !entersAll(one))
  return (
    <Dialog title={isSelf ? "Change your own role" : `Change ${member.email}`} open onClose={onClose}>
      <Form
        onSubmit={() => (Object.keys(changes).length > 0 ? submit() : onClose())}
        busy={busy}
        error={error}
        labels={{ role: "Role", environments: "Workspaces" }}
        submit="Save"
        onCancel={onClose}
      >
        <RadioGroup
          name="role"
          label="Role"
          value={role}
          onChange={setRole}
          options={offered.map((value) => ({ value, label: roleLabels[value], hint: `Can do: ${roleWords[value]}.` }))}
        />
        {entersAll(role) ? null : <WorkspaceChoice chosen={environments} onChange={setEnvironments} />}
        {isSelf ? null : <KeepKeys keep={keep} onChange={setKeep} />}
      </Form>
    </Dialog>
  )
}

export const RemoveMember = ({ member, onClose }: Props) => {
  const { organization, person } = useSession()
  const isSelf = member.personId === person.id
  const [keep, setKeep] = useState(false)
  const changed = useChanged(member.personId)
  const { busy, error, submit } = useSubmit(
    () =>
      call("members", "remove", {
        path: { personId: member.personId },
        ...(keep ? { urlParams: { keep_keys: true } } : {})
      }),
    () => {
      changed()
      toast(isSelf ? `You have left ${organization.name}.` : `${member.email} is removed.`)
      onClose()
    }
  )
  return (
    <Confirm
      title={isSelf ? `Leave ${organization.name}?` : `Remove ${member.email}?`}
      open
      onClose={onClose}
      onConfirm={submit}
      confirmLabel={isSelf ? "Leave" : "Remove"}
      danger
      busy={busy}
      error={error}
    >
      <p>
        {isSelf
          ? "You lose access at once. The API keys that you created and the invitations that you sent are revoked."
          : "They lose access at once, in every open session. The invitations that they sent are revoked."}
      </p>
      {isSelf ? null : <KeepKeys keep={keep} onChange={setKeep} />}
    </Confirm>
  )
}
