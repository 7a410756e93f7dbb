import { useState } from "preact/hooks"
import { type AnswerOf, call } from "../../api/Call.ts"
import { useAuthorNames } from "../../components/Author.tsx"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Confirm } from "../../components/Dialog.tsx"
import { Empty, Loaded } from "../../components/Loaded.tsx"
import { Page, Section } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { Time } from "../../components/Time.tsx"
import { invalidate, useQuery, useSubmit } from "../../state/Query.ts"
import { useSession, useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { EditMember, type Member, RemoveMember } from "./EditMember.tsx"
import { Invite } from "./Invite.tsx"
import { OrganizationSection } from "./OrganizationSection.tsx"
import { entersAll, type Role, roleLabels } from "./roles.ts"
import { workspacesInWords } from "./Workspaces.tsx"

type Invitation = AnswerOf<"invitations", "list">["data"][number]

/** Owners manage everyone, admins only developers and viewers. */
const manages = (actor: Role, other: Role): boolean => actor === "owner" || (actor === "admin" && !entersAll(other))

const Members = (props: { readonly onEdit: (member: Member) => void; readonly onRemove: (member: Member) => void }) => {
  const { organization, person } = useSession()
  const members = useQuery("organization/members", (signal) => call("members", "list", {}, { signal }))
  return (
    <Section title="Members">
      <Loaded query={members}>
        {({ data }) => (
          <Table
            caption="Members of the organization"
            head={["Person", "Role", "Workspaces", "Since", { label: "Actions", hidden: true, align: "end" }]}
            rows={data.map((member) => {
              const isSelf = member.personId === person.id
              return {
                key: member.personId,
                cells: [
                  <span key="person" class="row">
                    {member.email}
                    {isSelf ? <Badge>You</Badge> : null}
                  </span>,
                  roleLabels[member.role],
                  workspacesInWords(member.environments),
                  <Time key="since" at={member.joinedAt} />,
                  <span key="actions" class="row">
                    {manages(organization.role, member.role) ? (
                      <Button small label={`Change ${member.email}`} onClick={() => props.onEdit(member)}>
                        Change
                      </Button>
                    ) : null}
                    {isSelf || manages(organization.role, member.role) ? (
                      <Button
                        small
                        label={isSelf ? "Leave the organization" : `Remove ${member.email}`}
                        onClick={() => props.onRemove(member)}
                      >
                        {isSelf ? "Leave" : "Remove"}
                      </Button>
                    ) : null}
                  </span>
                ]
              }
            })}
          />
        )}
      </Loaded>
    </Section>
  )
}

const RevokeInvitation = ({
  invitation,
  onClose
}: {
  readonly invitation: Invitation
  readonly onClose: () => void
}) => {
  const { busy, error, submit } = useSubmit(
    () => call("invitations", "revoke", { path: { id: invitation.id } }),
    () => {
      invalidate("organization/invitations")
      toast(`The invitation to ${invitation.email} is revoked.`)
      onClose()
    }
  )
  return (
    <Confirm
      title={`Revoke the invitation to ${invitation.email}?`}
      open
      onClose={onClose}
      onConfirm={submit}
      confirmLabel="Revoke"
      danger
      busy={busy}
      error={error}
    >
      <p>The link in the mail no longer works.</p>
    </Confirm>
  )
}

const Invitations = ({ onInvite }: { readonly onInvite: () => void }) => {
  const { mayManageOrganization } = useWorkspace()
  const authorName = useAuthorNames()
  const [revoking, setRevoking] = useState<Invitation | undefined>(undefined)
  const invitations = useQuery("organization/invitations", (signal) => call("invitations", "list", {}, { signal }))
  return (
    <Section title="Open invitations">
      <Loaded query={invitations} lines={2}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty
              title="Nobody is invited at the moment"
              action={mayManageOrganization ? <Button onClick={onInvite}>Invite a person</Button> : null}
            />
          ) : (
            <Table
              caption="Open invitations"
              head={[
                "Address",
                "Role",
                "Workspaces",
                "Invited by",
                "Until",
                { label: "Actions", hidden: true, align: "end" }
              ]}
              rows={data.map((invitation) => ({
                key: invitation.id,
                cells: [
                  invitation.email,
                  roleLabels[invitation.role],
                  entersAll(invitation.role) ? "Both" : workspacesInWords(invitation.environments),
                  authorName(invitation.createdBy),
                  <Time key="until" at={invitation.expiresAt} />,
                  mayManageOrganization ? (
                    <Button
                      key="revoke"
                      small
                      label={`Revoke the invitation to ${invitation.email}`}
                      onClick={() => setRevoking(invitation)}
                    >
                      Revoke
                    </Button>
                  ) : null
                ]
              }))}
            />
          )
        }
      </Loaded>
      {revoking === undefined ? null : (
        <RevokeInvitation invitation={revoking} onClose={() => setRevoking(undefined)} />
      )}
    </Section>
  )
}

/** Members with their roles and workspaces, and open invitations. */
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
      <Invite open={inviting} onClose={() => setInviting(false)} />
      {editing === undefined ? null : <EditMember member={editing} onClose={() => setEditing(undefined)} />}
      {removing === undefined ? null : <RemoveMember member={removing} onClose={() => setRemoving(undefined)} />}
    </Page>
  )
}
