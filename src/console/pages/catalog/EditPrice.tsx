import { useState } from "preact/hooks"
import { call } from "../../api/Call.ts"
import { Dialog } from "../../components/Dialog.tsx"
import { Checkbox, TextField } from "../../components/Field.tsx"
import { Form } from "../../components/Form.tsx"
import { invalidate, useSubmit } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { textAt } from "../payments/Reading.ts"
import type { Price } from "./Offers.ts"
import { priceWords } from "./PriceWords.ts"

/** Changes a price's nickname and lookup key: the only fields that can change besides `active`. */
export const EditPrice = ({ onClose, price }: { readonly price: Price; readonly onClose: () => void }) => {
  const { environment } = useWorkspace()
  const before = { nickname: textAt(price, "nickname") ?? "", key: textAt(price, "lookup_key") ?? "" }
  const [nickname, setNickname] = useState(before.nickname)
  const [key, setKey] = useState(before.key)
  const [transfers, setTransfers] = useState(false)
  const hasNewKey = key.trim() !== before.key
  const { busy, error, submit } = useSubmit(
    () =>
      call("prices", "update", {
        path: { id: price.id },
        payload: {
          ...(nickname.trim() === before.nickname ? {} : { nickname: nickname.trim() === "" ? null : nickname.trim() }),
          ...(hasNewKey ? { lookup_key: key.trim() === "" ? null : key.trim() } : {}),
          ...(hasNewKey && key.trim() !== "" && transfers ? { transfer_lookup_key: true } : {})
        }
      }),
    () => {
      toast("Saved")
      invalidate(`${environment}/catalog/`)
      onClose()
    }
  )
  return (
    <Dialog title={`Rename ${priceWords(price)}`} open onClose={onClose}>
      <Form
        error={error}
        busy={busy}
        onSubmit={() => (hasNewKey || nickname.trim() !== before.nickname ? submit() : onClose())}
        labels={{ lookup_key: "Lookup key", nickname: "Nickname" }}
        submit="Save"
        onCancel={onClose}
      >
        <TextField
          name="nickname"
          label="Nickname"
          required={false}
          hint="A note of your own. Payers don't see it."
          maxLength={250}
          value={nickname}
          onChange={setNickname}
        />
        <TextField
          name="lookup_key"
          label="Lookup key"
          required={false}
          hint="Your integration's name for the price, such as basic."
          maxLength={200}
          monospace
          value={key}
          onChange={setKey}
        />
        {hasNewKey && key.trim() !== "" ? (
          <Checkbox
            name="transfer_lookup_key"
            label="Take the key from the price that has it"
            checked={transfers}
            onChange={setTransfers}
          />
        ) : null}
        <p class="quiet">What a price costs never changes. For another amount, add another price.</p>
      </Form>
    </Dialog>
  )
}
