import { useState } from "preact/hooks"
import { call } from "../../api/Call.ts"
import { ButtonLink } from "../../components/Button.tsx"
import { Copy } from "../../components/Copy.tsx"
import { Dialog } from "../../components/Dialog.tsx"
import { Checkbox, TextField } from "../../components/Field.tsx"
import { Form } from "../../components/Form.tsx"
import { invalidate, useSubmit } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { CountField } from "../catalog/CountField.tsx"
import { readCount } from "../catalog/Counts.ts"
import type { Offer } from "../catalog/Offers.ts"
import { PriceField } from "../catalog/PriceField.tsx"
import { isRecurring } from "../catalog/PriceWords.ts"
import type { CheckoutSession } from "./PaymentRecord.ts"

/** Creates a checkout session for one price, then shows its URL. */
export const NewCheckout = ({ onClose }: { readonly onClose: () => void }) => {
  const [session, setSession] = useState<CheckoutSession | undefined>(undefined)
  return (
    <Dialog title="New checkout session" open onClose={onClose}>
      {session === undefined ? <CheckoutForm onClose={onClose} onDone={setSession} /> : <Created session={session} />}
    </Dialog>
  )
}

const Created = ({ session }: { readonly session: CheckoutSession }) => {
  const { path } = useWorkspace()
  return (
    <>
      <p>
        Give this page to the one who pays, and to nobody else. The payment is certain once its event has arrived, not
        when the payer comes back.
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

interface CheckoutFormProps {
  readonly onClose: () => void
  readonly onDone: (session: CheckoutSession) => void
}

const CheckoutForm = ({ onClose, onDone }: CheckoutFormProps) => {
  const { environment } = useWorkspace()
  const [offer, setOffer] = useState<Offer | undefined>(undefined)
  const [quantity, setQuantity] = useState("1")
  const [reference, setReference] = useState("")
  const [allowsCodes, setAllowsCodes] = useState(false)
  const [isChecked, setChecked] = useState(false)
  const count = readCount(quantity)
  const { busy, error, submit } = useSubmit(
    (idempotencyKey) =>
      call(
        "checkoutSessions",
        "create",
        {
          payload: {
            mode: offer !== undefined && isRecurring(offer.price) ? "subscription" : "payment",
            line_items: [{ price: offer?.id ?? "", quantity: typeof count === "number" ? count : 1 }],
            ...(reference.trim() === "" ? {} : { client_reference_id: reference.trim() }),
            ...(allowsCodes ? { allow_promotion_codes: true } : {})
          }
        },
        { idempotencyKey }
      ),
    (created) => {
      invalidate(`${environment}/payments/sessions`)
      onDone(created)
    }
  )
  return (
    <Form
      error={error}
      busy={busy}
      onSubmit={() => {
        setChecked(true)
        if (offer !== undefined && typeof count === "number") submit()
      }}
      labels={{ "line_items.0.price": "Price", "line_items.0.quantity": "Quantity" }}
      submit="Create session"
      onCancel={onClose}
    >
      <PriceField
        name="line_items.0.price"
        label="Price"
        chosen={offer?.id ?? ""}
        onChange={setOffer}
        problem={isChecked && offer === undefined ? "Choose what is sold." : undefined}
      />
      <CountField name="line_items.0.quantity" label="Quantity" value={quantity} onChange={setQuantity} required />
      <TextField
        name="client_reference_id"
        label="Your reference"
        hint="An order's number, for instance. It comes back in the events."
        required={false}
        value={reference}
        maxLength={200}
        onChange={setReference}
      />
      <Checkbox
        name="allow_promotion_codes"
        label="The payer may enter a promotion code"
        checked={allowsCodes}
        onChange={setAllowsCodes}
      />
    </Form>
  )
}
