import { useState } from "preact/hooks"
import { call } from "../../api/Call.ts"
import { Dialog } from "../../components/Dialog.tsx"
import { Checkbox, TextArea } from "../../components/Field.tsx"
import { Form } from "../../components/Form.tsx"
import { invalidate, useSubmit } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { CountField } from "./CountField.tsx"
import { readCount } from "./Counts.ts"
import { emptyItem, type ItemDraft, readItems } from "./ItemDraft.ts"
import { ItemsField } from "./ItemsField.tsx"
import type { Problems } from "./PriceDraft.ts"
import { type LinkToShare, ShareLink } from "./ShareLink.tsx"

const names = { prefix: "line_items", adjustable: "adjustable_quantity" }

const labels = {
  "restrictions.completed_sessions.limit": "Limit",
  inactive_message: "Message when it is closed",
  "after_completion.hosted_confirmation.custom_message": "Message after payment"
}

/** Creates a payment link, then shows its URL to share. */
export const NewPaymentLink = ({ onClose }: { readonly onClose: () => void }) => {
  const [created, setCreated] = useState<LinkToShare | undefined>(undefined)
  return (
    <Dialog title="New payment link" open onClose={onClose}>
      {created === undefined ? (
        <LinkForm onClose={onClose} onDone={setCreated} />
      ) : (
        <ShareLink link={created} onClose={onClose} />
      )}
    </Dialog>
  )
}

interface LinkFormProps {
  readonly onClose: () => void
  readonly onDone: (link: LinkToShare) => void
}

const LinkForm = ({ onClose, onDone }: LinkFormProps) => {
  const { environment } = useWorkspace()
  const [items, setItems] = useState<ReadonlyArray<ItemDraft>>([emptyItem(0)])
  const [allowsCodes, setAllowsCodes] = useState(false)
  const [limit, setLimit] = useState("")
  const [closedMessage, setClosedMessage] = useState("")
  const [thanks, setThanks] = useState("")
  const [problems, setProblems] = useState<Problems>({})
  const written = readItems(items, names)
  const most = readCount(limit)
  const { busy, error, submit } = useSubmit(
    (idempotencyKey) =>
      call(
        "paymentLinks",
        "create",
        {
          payload: {
            line_items: (written.kind === "ready" ? written.value : []).map(({ bounds, price, quantity }) => ({
              price,
              quantity,
              ...(bounds === undefined ? {} : { adjustable_quantity: { enabled: true, ...bounds } })
            })),
            ...(allowsCodes ? { allow_promotion_codes: true } : {}),
            ...(typeof most === "number" ? { restrictions: { completed_sessions: { limit: most } } } : {}),
            ...(closedMessage.trim() === "" ? {} : { inactive_message: closedMessage.trim() }),
            ...(thanks.trim() === ""
              ? {}
              : {
                  after_completion: {
                    type: "hosted_confirmation",
                    hosted_confirmation: { custom_message: thanks.trim() }
                  }
                })
          }
        },
        { idempotencyKey }
      ),
    (link) => {
      invalidate(`${environment}/catalog/payment-links`)
      onDone({ url: link.url ?? "", what: "payment link" })
    }
  )
  return (
    <Form
      error={error}
      busy={busy}
      labels={labels}
      onSubmit={() => {
        setProblems(written.kind === "problems" ? written.problems : {})
        if (written.kind === "ready" && most !== "unreadable") submit()
      }}
      submit="Create link"
      onCancel={onClose}
    >
      <ItemsField {...names} items={items} onChange={setItems} problems={problems} />
      <Checkbox
        name="allow_promotion_codes"
        label="Payers may enter a promotion code"
        checked={allowsCodes}
        onChange={setAllowsCodes}
      />
      <CountField
        name="restrictions.completed_sessions.limit"
        label="Limit"
        required={false}
        hint="The number of sales after which the link closes."
        value={limit}
        onChange={setLimit}
      />
      <TextArea
        name="after_completion.hosted_confirmation.custom_message"
        label="Message after payment"
        required={false}
        rows={2}
        maxLength={500}
        value={thanks}
        onChange={setThanks}
      />
      <TextArea
        name="inactive_message"
        label="Message when it is closed"
        required={false}
        rows={2}
        maxLength={500}
        value={closedMessage}
        onChange={setClosedMessage}
      />
    </Form>
  )
}
