import { useState } from "preact/hooks"
import { call } from "../../api/Call.ts"
import { Button } from "../../components/Button.tsx"
import { Confirm, Dialog } from "../../components/Dialog.tsx"
import { TextField } from "../../components/Field.tsx"
import { Form } from "../../components/Form.tsx"
import { Section } from "../../components/Page.tsx"
import { useSubmit } from "../../state/Query.ts"
import { sessionChanged, useSession } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"

const Rename = ({ onClose }: { readonly onClose: () => void }) => {
  const { organization } = useSession()
  const [name, setName] = useState(organization.name)
  const { busy, error, submit } = useSubmit(
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
    <Dialog title="Rename the organization" open onClose={onClose}>
      <Form onSubmit={submit} busy={busy} error={error} labels={{ name: "Name" }} submit="Rename" onCancel={onClose}>
        <TextField
          name="name"
          label="Name"
          hint="As your colleagues know it. It is in the invitations that you send."
          autocomplete="organization"
          maxLength={200}
          value={name}
          onChange={setName}
          required
        />
      </Form>
    </Dialog>
  )
}

const Close = ({ onClose }: { readonly onClose: () => void }) => {
  const { organization } = useSession()
  const { busy, error, submit } = useSubmit(
    async () => {
      await call("organizations", "close")
      await sessionChanged()
    },
    () => toast(`${organization.name} is closed.`)
  )
  return (
    <Confirm
      title={`Close ${organization.name}?`}
      open
      onClose={onClose}
      onConfirm={submit}
      confirmLabel="Close the organization"
      danger
      busy={busy}
      error={error}
      typed="CLOSE"
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
    </Confirm>
  )
}

/** The organization's settings, for its owners: renaming and closing it. */
export const OrganizationSection = () => {
  const { organization } = useSession()
  const [open, setOpen] = useState<"rename" | "close" | undefined>(undefined)
  const dismiss = () => setOpen(undefined)
  if (organization.role !== "owner") return null
  return (
    <Section title="Organization">
      <p class="quiet">
        To hand {organization.name} over, make another member an owner, and leave. An organization that you have created
        by mistake can be closed.
      </p>
      <div class="row">
        <Button onClick={() => setOpen("rename")}>Rename the organization</Button>
        <Button onClick={() => setOpen("close")}>Close the organization</Button>
      </div>
      {open === "rename" ? <Rename onClose={dismiss} /> : null}
      {open === "close" ? <Close onClose={dismiss} /> : null}
    </Section>
  )
}
