import { useState } from "preact/hooks"
import { call } from "../../api/Call.ts"
import { ButtonLink } from "../../components/Button.tsx"
import { Copy } from "../../components/Copy.tsx"
import { Dialog, FormDialog } from "../../components/Dialog.tsx"
import { useDraft } from "../../components/forms/Draft.ts"
import { Checkbox, CountField, TextField } from "../../components/forms/Field.tsx"
import { filled, Reader } from "../../components/forms/Reader.ts"
import { useWorkspace } from "../../state/Session.ts"
import type { Offer } from "../catalog/Offers.ts"
import { PriceField } from "../catalog/prices/PriceField.tsx"
import { isRecurring } from "../catalog/prices/PriceWords.ts"
import type { CheckoutSession } from "./PaymentRecord.ts"

const Created = ({ session }: { readonly session: CheckoutSession }) => {
  const { path } = useWorkspace()
  return (
    <>
      <p>
        Give this page to the payer, and to nobody else. The payment is certain once its event has arrived, not when the
        payer comes back.
      </p>
      <p class="form-actions">
        {typeof session.url === "string" ? (
          <>
            <a class="button button-primary" href={session.url} target="_blank" rel="noreferrer">
              Open the payer's page
            </a>
            <Copy text={session.url} label="Copy the link" />
          </>
        ) : null}
        <ButtonLink href={path(`/payments/${session.id}`)}>Show the session</ButtonLink>
      </p>
    </>
  )
}

const emptyCheckout = { offer: undefined as Offer | undefined, quantity: "1", reference: "", allowsCodes: false }

const readCheckout = ({ allowsCodes, offer, quantity, reference }: typeof emptyCheckout) => {
  const reader = new Reader()
  if (offer === undefined) reader.problems["line_items.0.price"] = "Choose what is sold."
  const count = reader.neededCount("line_items.0.quantity", quantity)
  return reader.done({
    mode: offer !== undefined && isRecurring(offer.price) ? ("subscription" as const) : ("payment" as const),
    line_items: [{ price: offer?.id ?? "", quantity: count }],
    ...filled({ client_reference_id: reference.trim() }),
    ...(allowsCodes ? { allow_promotion_codes: true } : {})
  })
}

export const NewCheckout = ({ onClose }: { readonly onClose: () => void }) => {
  const [created, setCreated] = useState<CheckoutSession | undefined>(undefined)
  const { draft, field, form } = useDraft({
    initial: emptyCheckout,
    read: readCheckout,
    send: (payload, idempotencyKey) => call("checkoutSessions", "create", { payload }, { idempotencyKey }),
    onDone: setCreated
  })
  const title = "New checkout session"
  if (created !== undefined) {
    return (
      <Dialog title={title} onClose={onClose}>
        <Created session={created} />
      </Dialog>
    )
  }
  const { value: _, ...price } = field("offer", "line_items.0.price")
  return (
    <FormDialog {...form} title={title} submit="Create session" onClose={onClose}>
      <PriceField {...price} label="Price" chosen={draft.offer?.id ?? ""} />
      <CountField {...field("quantity", "line_items.0.quantity")} label="Quantity" required />
      <TextField
        {...field("reference", "client_reference_id")}
        label="Your reference"
        hint="An order's number, for instance. It comes back in the events."
        required={false}
        maxLength={200}
      />
      <Checkbox {...field("allowsCodes", "allow_promotion_codes")} label="The payer may enter a promotion code" />
    </FormDialog>
  )
}
