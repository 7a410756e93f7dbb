import { useState } from "preact/hooks"
import { call } from "../../api/Call.ts"
import { Dialog } from "../../components/Dialog.tsx"
import { Form } from "../../components/Form.tsx"
import { invalidate, useSubmit } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import type { Product } from "./Offers.ts"
import { draftOf, productChanges } from "./ProductDraft.ts"
import { ProductInputs } from "./ProductInputs.tsx"

/** Edits a product. Only changed fields are sent, so that someone else's concurrent change is kept. */
export const EditProduct = ({ onClose, product }: { readonly product: Product; readonly onClose: () => void }) => {
  const { environment } = useWorkspace()
  const [draft, setDraft] = useState(() => draftOf(product))
  const { busy, error, submit } = useSubmit(
    () => call("products", "update", { path: { id: product.id }, payload: productChanges(product, draft) }),
    () => {
      toast("Saved")
      invalidate(`${environment}/catalog/`)
      onClose()
    }
  )
  const isChanged = Object.keys(productChanges(product, draft)).length > 0
  return (
    <Dialog title="Edit product" open onClose={onClose}>
      <Form
        error={error}
        busy={busy}
        onSubmit={() => (isChanged ? submit() : onClose())}
        labels={{ name: "Name", description: "Description", unit_label: "Unit", url: "Page about it" }}
        submit="Save"
        onCancel={onClose}
      >
        <ProductInputs draft={draft} onChange={setDraft} />
      </Form>
    </Dialog>
  )
}
