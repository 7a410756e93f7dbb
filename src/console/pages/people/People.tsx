import { useState } from "preact/hooks"
import { type AnswerOf, call } from "../../api/Call.ts"
import { capitalized } from "../../api/Reading.ts"
import { useAuthorNames, useMembers } from "../../components/Author.tsx"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Confirm, ConfirmButton, FormDialog } from "../../components/Dialog.tsx"
import { useDraft, useFields } from "../../components/forms/Draft.ts"
import { Checkbox, TextField } from "../../components/forms/Field.tsx"
import { Empty, Loaded } from "../../components/Loaded.tsx"
import { Page, Section } from "../../components/Page.tsx"
import { actions, Table } from "../../components/Table.tsx"
import { Time } from "../../components/Time.tsx"
import { useQuery, useSubmit } from "../../state/Query.ts"
import { type Environment, sessionChanged, useSession, useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { type Membership, memberChanges } from "./memberChanges.ts"
import { OrganizationSection } from "./OrganizationSection.tsx"
import { entersAll, type Role, roles } from "./roles.ts"
import { RoleChoice, WorkspaceChoice, workspacesInWords } from "./Workspaces.tsx"

type Member = AnswerOf<"members", "list">["data"][number]

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

const EditMember = ({ member, onClose }: Props) => {
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

const RemoveMember = ({ member, onClose }: Props) => {
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

const sandboxOnly: ReadonlyArray<Environment> = ["sandbox"]
const empty = { email: "", role: "developer" as Exclude<Role, "owner">, environments: sandboxOnly }

const Invite = ({ onClose }: { readonly onClose: () => void }) => {
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

type Invitation = AnswerOf<"invitations", "list">["data"][number]

/** Owners manage everyone, admins only developers and viewers. */
const manages = (actor: Role, other: Role): boolean => actor === "owner" || (actor === "admin" && !entersAll(other))

const Members = (props: { readonly onEdit: (member: Member) => void; readonly onRemove: (member: Member) => void }) => {
  const { organization, person } = useSession()
  const isSelf = ({ personId }: Member) => personId === person.id
  return (
    <Section title="Members">
      <Loaded query={useMembers()}>
        {({ data }) => (
          <Table
            caption="Members of the organization"
            items={data.map((member) => ({ ...member, id: member.personId }))}
            columns={[
              {
                head: "Person",
                cell: (member) => (
                  <span class="row">
                    {member.email}
                    {isSelf(member) ? <Badge>You</Badge> : null}
                  </span>
                )
              },
              { head: "Role", cell: ({ role }) => capitalized(role) },
              { head: "Workspaces", cell: ({ environments }) => workspacesInWords(environments) },
              { head: "Since", cell: ({ joinedAt }) => <Time at={joinedAt} /> },
              {
                ...actions,
                cell: (member) => (
                  <span class="row">
                    {manages(organization.role, member.role) ? (
                      <Button small label={`Change ${member.email}`} onClick={() => props.onEdit(member)}>
                        Change
                      </Button>
                    ) : null}
                    {isSelf(member) || manages(organization.role, member.role) ? (
                      <Button
                        small
                        label={isSelf(member) ? "Leave the organization" : `Remove ${member.email}`}
                        onClick={() => props.onRemove(member)}
                      >
                        {isSelf(member) ? "Leave" : "Remove"}
                      </Button>
                    ) : null}
                  </span>
                )
              }
            ]}
          />
        )}
      </Loaded>
    </Section>
  )
}

const RevokeInvitation = ({ email, id }: Invitation) => (
  <ConfirmButton
    button="Revoke"
    label={`Revoke the invitation to ${email}`}
    small
    title={`Revoke the invitation to ${email}?`}
    danger
    action={() => call("invitations", "revoke", { path: { id } })}
    onDone={() => toast(`The invitation to ${email} is revoked.`)}
  >
    <p>The link in the mail no longer works.</p>
  </ConfirmButton>
)

const Invitations = ({ onInvite }: { readonly onInvite: () => void }) => {
  const authorName = useAuthorNames()
  const invitations = useQuery("organization/invitations", (signal) => call("invitations", "list", {}, { signal }))
  return (
    <Section title="Open invitations">
      <Loaded query={invitations} lines={2}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty
              title="Nobody is invited at the moment"
              action={<Button onClick={onInvite}>Invite a person</Button>}
            />
          ) : (
            <Table
              caption="Open invitations"
              items={data}
              columns={[
                { head: "Address", cell: ({ email }) => email },
                { head: "Role", cell: ({ role }) => capitalized(role) },
                {
                  head: "Workspaces",
                  cell: ({ environments, role }) => (entersAll(role) ? "Both" : workspacesInWords(environments))
                },
                { head: "Invited by", cell: ({ createdBy }) => authorName(createdBy) },
                { head: "Until", cell: ({ expiresAt }) => <Time at={expiresAt} /> },
                { ...actions, cell: (invitation) => <RevokeInvitation {...invitation} /> }
              ]}
            />
          )
        }
      </Loaded>
    </Section>
  )
}

export default function People() {
  const { organization } = useSession()
  const { mayManageOrganization } = useWorkspace()
  const [inviting, setInviting] = useState(false)
  const [editing, setEditing] = useState<Member | undefined>(undefined)
  const [removing, setRemoving] = useState<Member | undefined>(undefined)
  return (
    <Page
      title="People"
      lead={`Who works in ${organization.name}, and what they may do. Both workspaces share these people.`}
      actions={
        mayManageOrganization ? (
          <Button kind="primary" onClick={() => setInviting(true)}>
            Invite a person
          </Button>
        ) : null
      }
    >
      <Members onEdit={setEditing} onRemove={setRemoving} />
      {mayManageOrganization ? <Invitations onInvite={() => setInviting(true)} /> : null}
      <OrganizationSection />
      {inviting && <Invite onClose={() => setInviting(false)} />}
      {editing && <EditMember member={editing} onClose={() => setEditing(undefined)} />}
      {removing && <RemoveMember member={removing} onClose={() => setRemoving(undefined)} />}
    </Page>
  )
}
