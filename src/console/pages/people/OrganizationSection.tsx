import { useState } from "preact/hooks"
import { call } from "../../api/Call.ts"
import { Button } from "../../components/Button.tsx"
import { ConfirmButton, FormDialog } from "../../components/Dialog.tsx"
import { TextField } from "../../components/forms/Field.tsx"
import { Section } from "../../components/Page.tsx"
import { useSubmit } from "../../state/Query.ts"
import { sessionChanged, useSession } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"

export const OrganizationName = (props: { readonly value: string; readonly onChange: (name: string) => void }) => (
  <TextField
    {...props}
    name="name"
    label="Name"
    hint="The name that your colleagues know. It is in the invitations that you send."
    autocomplete="organization"
    maxLength={200}
    required
  />
)

const Rename = ({ onClose }: { readonly onClose: () => void }) => {
  const { organization } = useSession()
  const [name, setName] = useState(organization.name)
  const submission = useSubmit(
    async () => {
      await call("organizations", "rename", { payload: { name } })
      await sessionChanged()
    },
    () => {
      toast("The organization is renamed.")
      onClose()
    }
  )
  return (
    <FormDialog title="Rename the organization" submission={submission} submit="Rename" onClose={onClose}>
      <OrganizationName value={name} onChange={setName} />
    </FormDialog>
  )
}

export const OrganizationSection = () => {
  const { organization } = useSession()
  const [isRenaming, setRenaming] = useState(false)
  if (organization.role !== "owner") return null
  return (
    <Section title="Organization">
      <p class="quiet">
        To hand {organization.name} over, make another member an owner, and leave. An organization that you have created
        by mistake can be closed.
      </p>
      <div class="row">
        <Button onClick={() => setRenaming(true)}>Rename the organization</Button>
        <ConfirmButton
          button="Close the organization"
          title={`Close ${organization.name}?`}
          danger
          typed="CLOSE"
          action={async () => {
            await call("organizations", "close")
            await sessionChanged()
          }}
          onDone={() => toast(`${organization.name} is closed.`)}
        >
          <p>It must be empty first, in both workspaces:</p>
          <ul>
            <li>no account is connected;</li>
            <li>there are no destinations and no checkout pages;</li>
            <li>you are its only member.</li>
          </ul>
          <p>
            All of its API keys and open invitations are revoked. You can then create or join another organization. You
            can't open this one again.
          </p>
        </ConfirmButton>
      </div>
      {isRenaming && <Rename onClose={() => setRenaming(false)} />}
    </Section>
  )
}
