import { call } from "../../api/Call.ts"
import { FormDialog } from "../../components/Dialog.tsx"
import { useDraft } from "../../components/Draft.ts"
import { Checkbox, CountField, FieldGroup, RadioGroup, SelectField, TextField } from "../../components/Field.tsx"
import { Loaded } from "../../components/Loaded.tsx"
import { MoneyField } from "../../components/MoneyField.tsx"
import { useQuery } from "../../state/Query.ts"
import { toast } from "../../state/Toasts.ts"
import { currencyChoices, fallbackCurrency } from "./Currencies.ts"
import { readProducts } from "./Offers.ts"
import { emptyPromotion, readPromotion } from "./PromotionDraft.ts"

const kinds = [
  { value: "percent", label: "A percentage" },
  { value: "amount", label: "A fixed amount" }
] as const

const durations = [
  { value: "once", label: "The first payment" },
  { value: "repeating", label: "Some months", hint: "Of a subscription." },
  { value: "forever", label: "Every payment", hint: "Of a subscription, as long as it lasts." }
] as const

export const NewPromotionCode = ({
  currencies,
  onClose
}: {
  readonly currencies: ReadonlyArray<string>
  readonly onClose: () => void
}) => {
  const { draft, field, form } = useDraft({
    initial: () => emptyPromotion(currencies[0] ?? fallbackCurrency),
    read: readPromotion,
    send: (payload, idempotencyKey) => call("promotionCodes", "create", { payload }, { idempotencyKey }),
    onClose,
    onDone: ({ code }) => toast(`${code ?? "The code"} was created`)
  })
  return (
    <FormDialog {...form} title="New promotion code" submit="Create code" onClose={onClose}>
      <TextField
        {...field("code")}
        label="Code"
        required
        monospace
        hint="What payers enter: 3 to 40 letters and digits, such as SUMMER25."
        maxLength={40}
      />
      <RadioGroup {...field("kind", "discount")} label="Takes off" options={kinds} />
      {draft.kind === "percent" ? (
        <TextField
          {...field("percent", "discount.percent_off")}
          label="Percent off"
          inputMode="decimal"
          maxLength={6}
        />
      ) : (
        <div class="field-row">
          <MoneyField {...field("amount", "discount.amount_off")} label="Amount off" currency={draft.currency} />
          <SelectField
            {...field("currency", "discount.currency")}
            label="Currency"
            options={currencyChoices(currencies)}
          />
        </div>
      )}
      <RadioGroup {...field("duration")} label="Applies to" options={durations} />
      {draft.duration === "repeating" ? <CountField {...field("months", "duration_in_months")} label="Months" /> : null}
      <div class="field-row">
        <CountField
          {...field("limit", "max_redemptions")}
          label="Limit"
          required={false}
          hint="How often it can be used in all."
        />
        <TextField
          {...field("expires", "expires_at")}
          label="Expires"
          required={false}
          type="datetime-local"
          hint="In your own time zone."
        />
      </div>
      <Products {...field("products")} />
    </FormDialog>
  )
}

interface ProductsProps {
  readonly value: ReadonlyArray<string>
  readonly onChange: (products: ReadonlyArray<string>) => void
}

const Products = ({ onChange, value }: ProductsProps) => {
  const query = useQuery("catalog/on-sale", readProducts)
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
                  value={value.includes(product.id)}
                  onChange={(isChosen) =>
                    onChange(isChosen ? [...value, product.id] : value.filter((other) => other !== product.id))
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
