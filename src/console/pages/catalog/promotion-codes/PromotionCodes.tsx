import { useState } from "preact/hooks"
import { type AnswerOf, call } from "../../../api/Call.ts"
import { Badge } from "../../../components/Badge.tsx"
import { Button } from "../../../components/Button.tsx"
import { Id } from "../../../components/Copy.tsx"
import { FormDialog } from "../../../components/Dialog.tsx"
import { type Draft, useDraft } from "../../../components/forms/Draft.ts"
import {
  Checkbox,
  CountField,
  FieldGroup,
  RadioGroup,
  SelectField,
  TextField
} from "../../../components/forms/Field.tsx"
import { MoneyField } from "../../../components/forms/MoneyField.tsx"
import { Empty, Loaded } from "../../../components/Loaded.tsx"
import { Page } from "../../../components/Page.tsx"
import { Time } from "../../../components/Time.tsx"
import { useQuery } from "../../../state/Query.ts"
import { useWorkspace } from "../../../state/Session.ts"
import { toast } from "../../../state/Toasts.ts"
import { ActiveButton, ActiveList } from "../ActiveList.tsx"
import { currencyChoices, fallbackCurrency } from "../Currencies.ts"
import { readProducts } from "../Offers.ts"
import { useCurrencies } from "../UsedCurrencies.ts"
import {
  discountWords,
  durationWords,
  emptyPromotion,
  type PromotionDraft,
  productsOf,
  readPromotion,
  redemptionWords,
  unusableBecause
} from "./PromotionDraft.ts"

const kinds = [
  { value: "percent", label: "A percentage" },
  { value: "amount", label: "A fixed amount" }
] as const

const durations = [
  { value: "once", label: "The first payment" },
  { value: "repeating", label: "Some months", hint: "Of a subscription." },
  { value: "forever", label: "Every payment", hint: "Of a subscription, as long as it lasts." }
] as const

const Discount = ({
  currencies,
  draft,
  field
}: Pick<Draft<PromotionDraft>, "draft" | "field"> & { readonly currencies: ReadonlyArray<string> }) => (
  <>
    <RadioGroup {...field("kind", "discount")} label="Takes off" options={kinds} />
    {draft.kind === "percent" ? (
      <TextField {...field("percent", "discount.percent_off")} label="Percent off" inputMode="decimal" maxLength={6} />
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
  </>
)

const NewPromotionCode = (props: { readonly currencies: ReadonlyArray<string>; readonly onClose: () => void }) => {
  const { currencies, onClose } = props
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
      <Discount draft={draft} field={field} currencies={currencies} />
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

type PromotionCode = AnswerOf<"promotionCodes", "get">

export default function PromotionCodes() {
  const { can } = useWorkspace()
  const [isCreating, setCreating] = useState(false)
  const currencies = useCurrencies()
  const mayWrite = can("coupons:write", "promotionCodes.create")
  const create = mayWrite ? (
    <Button kind="primary" onClick={() => setCreating(true)}>
      New promotion code
    </Button>
  ) : undefined
  return (
    <Page title="Promotion codes" actions={create}>
      <ActiveList<PromotionCode>
        kind="promotion-codes"
        load={(urlParams, signal) => call("promotionCodes", "list", { urlParams }, { signal })}
        words={["Active", "Inactive"]}
        nothing={["No active codes", "No inactive codes"]}
        noun="codes"
        empty={
          <Empty title="No promotion codes yet" action={create}>
            Payers enter a code at checkout and pay less, if the session, link or page allows it.
          </Empty>
        }
        caption="Promotion codes, newest first"
        columns={[
          { head: "Code", cell: ({ code, id }) => <Id full value={code ?? id} /> },
          { head: "Discount", cell: (code) => <DiscountCell code={code} /> },
          { head: "Used", cell: redemptionWords },
          {
            head: "Expires",
            cell: ({ expires_at: at }) =>
              at === null || at === undefined ? <span class="quiet">Never</span> : <Time at={at} />
          },
          { head: "Status", cell: (code) => <StatusCell code={code} /> },
          mayWrite && { head: "Actions", hidden: true, cell: (code) => <Actions code={code} /> }
        ]}
      />
      {isCreating && <NewPromotionCode currencies={currencies ?? []} onClose={() => setCreating(false)} />}
    </Page>
  )
}

const DiscountCell = ({ code }: { readonly code: PromotionCode }) => {
  const products = productsOf(code.coupon)
  return (
    <>
      {discountWords(code.coupon)} <span class="quiet">{durationWords(code.coupon)}</span>
      {products.length === 0 ? null : (
        <span class="quiet">
          , on {products.length} {products.length === 1 ? "product" : "products"}
        </span>
      )}
    </>
  )
}

const reasonWords = { expired: "Expired", "used up": "Used up", off: "Inactive" } as const

const StatusCell = ({ code }: { readonly code: PromotionCode }) => {
  const reason = unusableBecause(code, Date.now() / 1000)
  return reason === undefined ? <Badge tone="ok">Active</Badge> : <Badge>{reasonWords[reason]}</Badge>
}

const Actions = ({ code }: { readonly code: PromotionCode }) => {
  const reason = unusableBecause(code, Date.now() / 1000)
  // The provider never reactivates a code that has expired or was used up
  if (reason === "expired" || reason === "used up") return null
  return (
    <ActiveButton
      isActive={code.active === true}
      words={["Deactivate", "Activate"]}
      of={code.code ?? code.id}
      set={(active) => call("promotionCodes", "update", { path: { id: code.id }, payload: { active } })}
    />
  )
}
