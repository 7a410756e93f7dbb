import { formatAmount } from "../../components/amounts.ts"
import { Button } from "../../components/Button.tsx"
import { fieldsOf } from "../../components/forms/Draft.ts"
import { FieldGroup, Reason, TextArea, TextField } from "../../components/forms/Field.tsx"
import { useRefusal } from "../../components/forms/Form.tsx"
import { Notice } from "../../components/Notice.tsx"
import { type EventType, type FilterName, neverPassing } from "../events/eventTypes.ts"
import { type FilterForm, filtersOfForm, type MetadataRow, maxMetadataPairs, setFilters } from "./filterForm.ts"

interface FilterFieldsProps {
  readonly form: FilterForm
  readonly onChange: (form: FilterForm) => void
  readonly types: ReadonlySet<EventType>
}

const labels: Readonly<Record<FilterName, string>> = {
  currencies: "currencies",
  amountMin: "least amount",
  amountMax: "greatest amount",
  products: "products",
  prices: "prices",
  metadata: "metadata"
}

const amountHint = (written: string, currency: string | undefined): string =>
  /^\d{1,15}$/.test(written.trim()) && currency !== undefined && /^[a-z]{3}$/.test(currency)
    ? `That is ${formatAmount(written.trim(), currency)}`
    : "In the smallest unit: 1500 is R$15.00, or ¥1500"

const Metadata = (props: {
  readonly value: ReadonlyArray<MetadataRow>
  readonly onChange: (rows: ReadonlyArray<MetadataRow>) => void
  readonly problem: string | undefined
}) => {
  const { onChange, value: rows } = props
  const reason = useRefusal("filters.metadata", "Metadata") ?? props.problem
  const nextId = Math.max(-1, ...rows.map(({ id }) => id)) + 1
  return (
    <FieldGroup
      label="Metadata"
      hint="All of these pairs must be in the metadata of the payment, session, subscription or other object. svc_checkout_page tells checkout pages apart."
    >
      {rows.map((row, at) => {
        const field = fieldsOf(row, (change) => onChange(rows.with(at, change(row))))
        return (
          <div class="metadata-row" key={row.id}>
            <TextField {...field("key", `key ${row.id}`)} label={`Key ${at + 1}`} maxLength={40} monospace />
            <TextField {...field("value", `value ${row.id}`)} label={`Value ${at + 1}`} maxLength={500} monospace />
            <Button kind="quiet" label={`Remove pair ${at + 1}`} onClick={() => onChange(rows.toSpliced(at, 1))}>
              Remove
            </Button>
          </div>
        )
      })}
      <Reason role="status" text={reason} />
      {rows.length < maxMetadataPairs ? (
        <div>
          <Button small onClick={() => onChange([...rows, { id: nextId, key: "", value: "" }])}>
            Add a pair
          </Button>
        </div>
      ) : null}
    </FieldGroup>
  )
}

/** Warns of chosen types that the filters always hold back; announced to screen readers while typing. */
const NeverPassing = ({ stopped }: { readonly stopped: ReturnType<typeof neverPassing> }) => (
  <div class="filter-warning" role="status">
    {stopped.size === 0 ? null : (
      <Notice
        tone="warning"
        title={`${stopped.size === 1 ? "One chosen type" : `${stopped.size} chosen types`} would never be sent`}
      >
        <p>These types lack the data that the filters check, so none of their events pass:</p>
        <ul class="stopped-types">
          {[...stopped].map(([type, names]) => (
            <li key={type}>
              <code>{type}</code>: no {names.map((name) => labels[name]).join(", ")}
            </li>
          ))}
        </ul>
        <p>Leave these types out, or create another destination for them without the filters.</p>
      </Notice>
    )}
  </div>
)

/** The filters, validated while typed. */
export const FilterFields = ({ form, onChange, types }: FilterFieldsProps) => {
  const { filters, problems } = filtersOfForm(form)
  const currency = filters.currencies?.[0]
  const field = fieldsOf(form, (change) => onChange(change(form)), problems)
  const amount = (name: "amountMin" | "amountMax", label: string) => (
    <TextField
      {...field(name, `filters.${name}`)}
      label={label}
      required={false}
      inputMode="numeric"
      hint={amountHint(form[name], currency)}
      monospace
    />
  )
  const ids = (name: "products" | "prices", label: string, prefix: string) => (
    <TextArea
      {...field(name, `filters.${name}`)}
      label={label}
      required={false}
      hint={`Ids that begin with ${prefix}, one per line, up to 20. Only checkouts and subscriptions name ${name}.`}
      rows={3}
      monospace
    />
  )
  return (
    <>
      <div class="filter-grid">
        <TextField
          {...field("currencies", "filters.currencies")}
          label="Currencies"
          required={false}
          hint="Codes of three letters, such as brl, usd; up to 10"
          monospace
        />
        {amount("amountMin", "Least amount")}
        {amount("amountMax", "Greatest amount")}
      </div>
      <div class="filter-grid">
        {ids("products", "Products", "prod_")}
        {ids("prices", "Prices", "price_")}
      </div>
      <Metadata {...field("metadata", "filters.metadata")} />
      <NeverPassing stopped={neverPassing([...types], setFilters(filters))} />
    </>
  )
}
