import { useState } from "preact/hooks"
import { call } from "../../api/Call.ts"
import { Dialog } from "../../components/Dialog.tsx"
import { invalidate, useSubmit } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { emptyCheckoutPage, newPage } from "./CheckoutPageDraft.ts"
import { CheckoutPageForm } from "./CheckoutPageForm.tsx"
import { type LinkToShare, ShareLink } from "./ShareLink.tsx"

/** Creates a checkout page, then shows its URL to share. */
export const NewCheckoutPage = ({ onClose }: { readonly onClose: () => void }) => {
  const [created, setCreated] = useState<LinkToShare | undefined>(undefined)
  return (
    <Dialog title="New checkout page" open onClose={onClose}>
      {created === undefined ? (
        <NewPageForm onClose={onClose} onDone={setCreated} />
      ) : (
        <ShareLink link={created} onClose={onClose} />
      )}
    </Dialog>
  )
}

interface NewPageFormProps {
  readonly onClose: () => void
  readonly onDone: (link: LinkToShare) => void
}

const NewPageForm = ({ onClose, onDone }: NewPageFormProps) => {
  const { environment } = useWorkspace()
  const [draft, setDraft] = useState(emptyCheckoutPage)
  const written = newPage(draft)
  const { busy, error, submit } = useSubmit(
    (idempotencyKey) =>
      written.kind === "ready"
        ? call("checkoutPages", "create", { payload: written.value }, { idempotencyKey })
        : Promise.reject(new Error("The form sends nothing that has problems")),
    (page) => {
      invalidate(`${environment}/catalog/checkout-pages`)
      onDone({ url: page.url, what: "checkout page" })
    }
  )
  return (
    <CheckoutPageForm
      draft={draft}
      onChange={setDraft}
      problems={written.kind === "problems" ? written.problems : undefined}
      busy={busy}
      error={error}
      submitLabel="Create page"
      onSubmit={submit}
      onClose={onClose}
    />
  )
}
