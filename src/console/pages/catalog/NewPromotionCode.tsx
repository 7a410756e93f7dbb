import { useState } from "preact/hooks"
import { call } from "../../api/Call.ts"
import { Dialog } from "../../components/Dialog.tsx"
import { Checkbox, FieldGroup, RadioGroup, SelectField, TextField } from "../../components/Field.tsx"
import { Form } from "../../components/Form.tsx"
import { Loaded } from "../../components/Loaded.tsx"
import { MoneyField } from "../../components/MoneyField.tsx"
import { invalidate, useQuery, useSubmit } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { CountField } from "./CountField.tsx"
import { currencyChoices } from "./Currencies.ts"
import { readProducts } from "./Offers.ts"
import type { Problems } from "./PriceDraft.ts"
import { emptyPromotion, type PromotionDraft, readPromotion } from "./PromotionDraft.ts"
import { fallbackCurrency } from "./UsedCurrencies.ts"

const labels = {
  code: "Code",
  "discount.percent_off": "Percent off",
  "discount.amount_off": "Amount off",
  duration_in_months: "Months",
  max_redemptions: "Limit",
  expires_at: "Expires"
}

export interface NewPromotionCodeProps {
  /** The currencies to offer first. */
  readonly currencies: ReadonlyArray<string>
  readonly onClose: () => void
}

export const NewPromotionCode = ({ currencies, onClose }: NewPromotionCodeProps) => {
  const { environment } = useWorkspace()
  const [draft, setDraft] = useState(() => emptyPromotion(currencies[0] ?? fallbackCurrency))
  const [problems, setProblems] = useState<Problems>({})
  const change = (changed: Partial<PromotionDraft>) => setDraft((before) => ({ ...before, ...changed }))
  const { busy, error, submit } = useSubmit(
    async (idempotencyKey) => {
      const written = readPromotion(draft)
      if (written.kind === "problems") throw new Error("A code with problems is not submitted")
      return call("promotionCodes", "create", { payload: written.value }, { idempotencyKey })
    },
    (created) => {
      toast(`${created.code ?? "The code"} was created`)
      invalidate(`${environment}/catalog/promotion-codes`)
      onClose()
    }
  )
  return (
    <Dialog title="New promotion code" open onClose={onClose}>
      <Form
        error={error}
        busy={busy}
        labels={labels}
        onSubmit={() => {
          const written = readPromotion(draft)
          setProblems(written.kind === "problems" ? written.problems : {})
          if (written.kind === "ready") submit()
        }}
        submit="Create code"
        onCancel={onClose}
      >
        <TextField
          name="code"
          label="Code"
          required
          monospace
          hint="What payers enter: 3 to 40 letters and digits, such as SUMMER25."
          maxLength={40}
          value={draft.code}
          onChange={(code) => change({ code })}
        />
        <Discount draft={draft} change={change} problems={problems} currencies={currencies} />
        <Duration draft={draft} change={change} problems={problems} />
        <div class="field-row">
          <CountField
            name="max_redemptions"
            label="Limit"
            required={false}
            hint="How often it can be used in all."
            value={draft.limit}
            onChange={(limit) => change({ limit })}
            problem={problems["max_redemptions"]}
          />
          <TextField
            name="expires_at"
            label="Expires"
            required={false}
            type="datetime-local"
            hint="In your own time zone."
            value={draft.expires}
            onChange={(expires) => change({ expires })}
            problem={problems["expires_at"]}
          />
        </div>
        <Products draft={draft} change={change} />
      </Form>
    </Dialog>
  )
}

interface PartProps {
  readonly draft: PromotionDraft
  readonly change: (changed: Partial<PromotionDraft>) => void
  readonly problems: Problems
}

const kinds = [
  { value: "percent", label: "A percentage" },
  { value: "amount", label: "A fixed amount" }
] as const

const Discount = ({
  change,
  currencies,
  draft,
  problems
}: PartProps & { readonly currencies: ReadonlyArray<string> }) => (
  <>
    <RadioGroup
      name="discount"
      label="Takes off"
      value={draft.kind}
      options={kinds}
      onChange={(kind) => change({ kind })}
    />
    {draft.kind === "percent" ? (
      <TextField
        name="discount.percent_off"
        label="Percent off"
        inputMode="decimal"
        maxLength={6}
        value={draft.percent}
        onChange={(percent) => change({ percent })}
        problem={problems["discount.percent_off"]}
      />
    ) : (
      <div class="field-row">
        <MoneyField
          name="discount.amount_off"
          label="Amount off"
          currency={draft.currency}
          amount={draft.amount}
          onChange={(amount) => change({ amount })}
          problem={problems["discount.amount_off"]}
        />
        <SelectField
          name="discount.currency"
          label="Currency"
          value={draft.currency}
          options={currencyChoices(currencies)}
          onChange={(currency) => change({ currency })}
        />
      </div>
    )}
  </>
)

const durations = [
  { value: "once", label: "The first payment" },
  { value: "repeating", label: "Some months", hint: "Of a subscription." },
  { value: "forever", label: "Every payment", hint: "Of a subscription, as long as it lasts." }
] as const

const Duration = ({ change, draft, problems }: PartProps) => (
  <>
    <RadioGroup
      name="duration"
      label="Applies to"
      value={draft.duration}
      options={durations}
      onChange={(duration) => change({ duration })}
    />
    {draft.duration === "repeating" ? (
      <CountField
        name="duration_in_months"
        label="Months"
        value={draft.months}
        onChange={(months) => change({ months })}
        problem={problems["duration_in_months"]}
      />
    ) : null}
  </>
)

const Products = ({ change, draft }: Omit<PartProps, "problems">) => {
  const { environment } = useWorkspace()
  const query = useQuery(`${environment}/catalog/on-sale`, readProducts)
  return (
    <FieldGroup label="Products" hint="Choose none for all products.">
      <Loaded query={query} lines={2}>
        {({ hasMore, items }) => (
          <>
            <div class="choices">
              {items.map((product) => (
                <Checkbox
                  key={product.id}
                  name={`products.${product.id}`}
                  label={product.name ?? product.id}
                  checked={draft.products.includes(product.id)}
                  onChange={(checked) =>
                    change({
                      products: checked
                        ? [...draft.products, product.id]
                        : draft.products.filter((other) => other !== product.id)
                    })
                  }
                />
              ))}
            </div>
            {hasMore ? <p class="quiet">The newest {items.length} are shown; the API takes any others.</p> : null}
          </>
        )}
      </Loaded>
    </FieldGroup>
  )
}
