import { useState } from "preact/hooks"
import { call } from "../../api/Call.ts"
import { Dialog } from "../../components/Dialog.tsx"
import { Form } from "../../components/Form.tsx"
import { invalidate, useSubmit } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { textAt } from "../payments/Reading.ts"
import type { Product } from "./Offers.ts"
import { emptyPrice, type Problems, readPrice } from "./PriceDraft.ts"
import { PriceInputs } from "./PriceInputs.tsx"
import { priceWords } from "./PriceWords.ts"
import { fallbackCurrency, useCurrencies } from "./UsedCurrencies.ts"

/** Adds a price of any kind to a product. */
export const NewPrice = ({ onClose, product }: { readonly product: Product; readonly onClose: () => void }) => {
  const { environment } = useWorkspace()
  const own = textAt(product, "default_price", "currency")
  const currencies = useCurrencies() ?? []
  const [draft, setDraft] = useState(() => emptyPrice(own ?? currencies[0] ?? fallbackCurrency))
  const [problems, setProblems] = useState<Problems>({})
  const { busy, error, submit } = useSubmit(
    async (idempotencyKey) => {
      const written = readPrice(draft)
      if (written.kind === "problems") throw new Error("A price with problems is not submitted")
      return call("prices", "create", { payload: { product: product.id, ...written.value } }, { idempotencyKey })
    },
    (price) => {
      toast(`${priceWords(price)} was added`)
      invalidate(`${environment}/catalog/`)
      onClose()
    }
  )
  return (
    <Dialog title="Add a price" open onClose={onClose}>
      <Form
        error={error}
        busy={busy}
        onSubmit={() => {
          const written = readPrice(draft)
          setProblems(written.kind === "problems" ? written.problems : {})
          if (written.kind === "ready") submit()
        }}
        labels={{ unit_amount: "Price", lookup_key: "Lookup key", tiers: "Tiers" }}
        submit="Add price"
        onCancel={onClose}
      >
        <PriceInputs
          draft={draft}
          onChange={setDraft}
          problems={problems}
          currencies={own === undefined ? currencies : [own, ...currencies]}
        />
      </Form>
    </Dialog>
  )
}
