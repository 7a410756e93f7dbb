import { Button } from "../../components/Button.tsx"
import { FieldGroup, TextArea, TextField } from "../../components/Field.tsx"
import { useRefusal } from "../../components/Form.tsx"
import { formatMoney } from "../../components/Money.tsx"
import { Notice } from "../../components/Notice.tsx"
import { type EventType, type FilterName, neverPassing } from "../events/eventTypes.ts"
import { type FilterForm, filtersOfForm, type MetadataRow, maxMetadataPairs, setFilters } from "./filterForm.ts"

interface FilterFieldsProps {
  readonly form: FilterForm
  readonly onChange: (form: FilterForm) => void
  /** The selected types, for the warning. */
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

/** The typed amount in the filter's first currency, for its hint. */
const amountHint = (written: string, currency: string | undefined): string =>
  /^\d{1,15}$/.test(written.trim()) && currency !== undefined && /^[a-z]{3}$/.test(currency)
    ? `That is ${formatMoney(written.trim(), currency)}`
    : "In the smallest unit: 1500 is R$15.00, or ¥1500"

const Metadata = ({
  onChange,
  problem,
  rows
}: {
  readonly rows: ReadonlyArray<MetadataRow>
  readonly onChange: (rows: ReadonlyArray<MetadataRow>) => void
  readonly problem: string | undefined
}) => {
  const reason = useRefusal("filters.metadata") ?? problem
  const replace = (changed: MetadataRow) => onChange(rows.map((row) => (row.id === changed.id ? changed : row)))
  const nextId = Math.max(-1, ...rows.map(({ id }) => id)) + 1
  return (
    <FieldGroup
      label="Metadata"
      hint="All of these pairs must be in the metadata of the payment, session, subscription or other object. svc_checkout_page tells checkout pages apart."
    >
      {rows.map((row, at) => (
        <div class="metadata-row" key={row.id}>
          <TextField
            name={`key ${row.id}`}
            label={`Key ${at + 1}`}
            value={row.key}
            onChange={(key) => replace({ ...row, key })}
            maxLength={40}
            monospace
          />
          <TextField
            name={`value ${row.id}`}
            label={`Value ${at + 1}`}
            value={row.value}
            onChange={(value) => replace({ ...row, value })}
            maxLength={500}
            monospace
          />
          <Button
            kind="quiet"
            label={`Remove pair ${at + 1}`}
            onClick={() => onChange(rows.filter(({ id }) => id !== row.id))}
          >
            Remove
          </Button>
        </div>
      ))}
      {reason === undefined ? null : (
        <p class="field-reason" role="status">
          {reason}
        </p>
      )}
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

/** The filters, validated while typed, with a warning about selected types that can never pass them. */
export const FilterFields = ({ form, onChange, types }: FilterFieldsProps) => {
  const { filters, problems } = filtersOfForm(form)
  const stopped = neverPassing([...types], setFilters(filters))
  const currency = filters.currencies?.[0]
  return (
    <>
      <div class="filter-grid">
        <TextField
          name="filters.currencies"
          label="Currencies"
          required={false}
          hint="Codes of three letters, such as brl, usd; up to 10"
          value={form.currencies}
          onChange={(currencies) => onChange({ ...form, currencies })}
          problem={problems["filters.currencies"]}
          monospace
        />
        <TextField
          name="filters.amountMin"
          label="Least amount"
          required={false}
          inputMode="numeric"
          hint={amountHint(form.amountMin, currency)}
          value={form.amountMin}
          onChange={(amountMin) => onChange({ ...form, amountMin })}
          problem={problems["filters.amountMin"]}
          monospace
        />
        <TextField
          name="filters.amountMax"
          label="Greatest amount"
          required={false}
          inputMode="numeric"
          hint={amountHint(form.amountMax, currency)}
          value={form.amountMax}
          onChange={(amountMax) => onChange({ ...form, amountMax })}
          problem={problems["filters.amountMax"]}
          monospace
        />
      </div>
      <div class="filter-grid">
        <TextArea
          name="filters.products"
          label="Products"
          required={false}
          hint="Ids that begin with prod_, one per line, up to 20. Only checkouts and subscriptions name products."
          value={form.products}
          onChange={(products) => onChange({ ...form, products })}
          problem={problems["filters.products"]}
          rows={3}
          monospace
        />
        <TextArea
          name="filters.prices"
          label="Prices"
          required={false}
          hint="Ids that begin with price_, one per line, up to 20. Only checkouts and subscriptions name prices."
          value={form.prices}
          onChange={(prices) => onChange({ ...form, prices })}
          problem={problems["filters.prices"]}
          rows={3}
          monospace
        />
      </div>
      <Metadata
        rows={form.metadata}
        onChange={(metadata) => onChange({ ...form, metadata })}
        problem={problems["filters.metadata"]}
      />
      <div class="filter-warning" role="status">
        {stopped.size === 0 ? null : (
          <Notice
            tone="warning"
            title={`${stopped.size === 1 ? "One chosen type" : `${stopped.size} chosen types`} would never be sent`}
          >
            <p>They have nothing for these filters to look at, so none of their events passes:</p>
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
    </>
  )
}
