import { SelectField, TextField } from "../../components/Field.tsx"
import { Filters } from "../../components/Filters.tsx"
import { useUrlState } from "../../state/UrlState.ts"

/** The filters of a list of payments, which live in the address. */
export const usePaymentFilters = () => useUrlState("from", "to", "status")

/** What {@link PaymentFilters} offers. */
export interface PaymentFiltersProps {
  /** The states to choose from, in words. */
  readonly statuses: ReadonlyArray<string>
}

/** A row of filters above a list of payments. */
export const PaymentFilters = ({ statuses }: PaymentFiltersProps) => {
  const [{ from, status, to }, change] = usePaymentFilters()
  const isFiltered = status !== "" || from !== "" || to !== ""
  return (
    <Filters {...(isFiltered ? { onClear: () => change({ from: "", to: "", status: "" }) } : {})}>
      <SelectField
        name="status"
        label="Status"
        value={status}
        onChange={(chosen) => change({ status: chosen })}
        options={[{ value: "", label: "All" }, ...statuses.map((words) => ({ value: words, label: words }))]}
      />
      <TextField name="from" label="From" type="date" value={from} onChange={(day) => change({ from: day })} />
      <TextField name="to" label="To" type="date" value={to} onChange={(day) => change({ to: day })} />
    </Filters>
  )
}

/** How many objects a page of a list has: more if this page passes over some of them, since the API has no such filter. */
export const pageSizeFor = (passedOverBy: string): number => (passedOverBy === "" ? 25 : 100)
