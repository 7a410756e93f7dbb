import { useState } from "preact/hooks"
import { call } from "../../api/Call.ts"
import { Dialog } from "../../components/Dialog.tsx"
import { invalidate, useSubmit } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { type CheckoutPage, draftOfPage, pageChanges } from "./CheckoutPageDraft.ts"
import { CheckoutPageForm } from "./CheckoutPageForm.tsx"

export interface EditCheckoutPageProps {
  readonly page: CheckoutPage
  readonly onClose: () => void
}

/** Edits a checkout page, whose URL stays the same. */
export const EditCheckoutPage = ({ onClose, page }: EditCheckoutPageProps) => {
  const { environment } = useWorkspace()
  const [draft, setDraft] = useState(() => draftOfPage(page))
  const changes = pageChanges(page, draft)
  const { busy, error, submit } = useSubmit(
    () =>
      call("checkoutPages", "update", {
        path: { id: page.id },
        payload: changes.kind === "ready" ? changes.value : {}
      }),
    ({ title }) => {
      toast(`${title} was changed`)
      invalidate(`${environment}/catalog/checkout-pages`)
      onClose()
    }
  )
  const isChanged = changes.kind === "ready" && Object.keys(changes.value).length > 0
  return (
    <Dialog title={`Edit ${page.title}`} open onClose={onClose}>
      <p class="quiet">Its address stays the same, and so do the payments that payers have begun there.</p>
      <CheckoutPageForm
        draft={draft}
        onChange={setDraft}
        problems={changes.kind === "problems" ? changes.problems : undefined}
        busy={busy}
        error={error}
        submitLabel="Save"
        onSubmit={() => (isChanged ? submit() : onClose())}
        onClose={onClose}
      />
    </Dialog>
  )
}
