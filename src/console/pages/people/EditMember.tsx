import { useState } from "preact/hooks"
import { type AnswerOf, call } from "../../api/Call.ts"
import { Confirm, FormDialog } from "../../components/Dialog.tsx"
import { useDraft } from "../../components/Draft.ts"
import { Checkbox } from "../../components/Field.tsx"
import { useSubmit } from "../../state/Query.ts"
import { sessionChanged, useSession } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { type Membership, memberChanges } from "./memberChanges.ts"
import { entersAll, roles } from "./roles.ts"
import { RoleChoice, WorkspaceChoice } from "./Workspaces.tsx"

export type Member = AnswerOf<"members", "list">["data"][number]

interface Props {
  readonly member: Member
  readonly onClose: () => void
}

const keepKeys = (keep: boolean) => (keep ? { keep_keys: true } : {})

const KeepKeys = (field: { readonly value: boolean; readonly onChange: (keep: boolean) => void }) => (
  <Checkbox
    {...field}
    name="keep_keys"
    label="Keep the API keys that they created"
    hint="Otherwise those that they could no longer create are revoked, and programs that use them are refused."
  />
)

export const EditMember = ({ member, onClose }: Props) => {
  const { organization, person } = useSession()
  const isSelf = member.personId === person.id
  const [keep, setKeep] = useState(false)
  // The form's initial values
  const [before] = useState(member)
  const { draft, field, form } = useDraft({
    initial: (): Membership => before,
    read: (membership: Membership) => ({ kind: "ready" as const, value: memberChanges(before, membership) }),
    send: (payload) =>
      call("members", "update", { path: { personId: member.personId }, urlParams: keepKeys(keep), payload }),
    onClose,
    onDone: () => {
      toast(`${member.email} is changed.`)
      if (isSelf) void sessionChanged()
    }
  })
  const offered = organization.role === "owner" ? roles : roles.filter((one) => !entersAll(one))
  return (
    <FormDialog
      {...form}
      title={isSelf ? "Change your own role" : `Change ${member.email}`}
      submit="Save"
      onClose={onClose}
    >
      <RoleChoice {...field("role")} offered={offered} />
      {entersAll(draft.role) ? null : <WorkspaceChoice {...field("environments")} />}
      {isSelf ? null : <KeepKeys value={keep} onChange={setKeep} />}
    </FormDialog>
  )
}

export const RemoveMember = ({ member, onClose }: Props) => {
  const { organization, person } = useSession()
  const isSelf = member.personId === person.id
  const [keep, setKeep] = useState(false)
  const submission = useSubmit(
    () => call("members", "remove", { path: { personId: member.personId }, urlParams: keepKeys(keep) }),
    () => {
      if (isSelf) void sessionChanged()
      toast(isSelf ? `You have left ${organization.name}.` : `${member.email} is removed.`)
      onClose()
    }
  )
  return (
    <Confirm
      title={isSelf ? `Leave ${organization.name}?` : `Remove ${member.email}?`}
      confirmLabel={isSelf ? "Leave" : "Remove"}
      danger
      submission={submission}
      onClose={onClose}
    >
      <p>
        {isSelf
          ? "You lose access at once. The API keys that you created and the invitations that you sent are revoked."
          : "They lose access at once, in every open session. The invitations that they sent are revoked."}
      </p>
      {isSelf ? null : <KeepKeys value={keep} onChange={setKeep} />}
    </Confirm>
  )
}
