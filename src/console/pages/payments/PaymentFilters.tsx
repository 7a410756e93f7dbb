import { SelectField, TextField } from "../../components/Field.tsx"
import { Filters } from "../../components/Filters.tsx"
import { useUrlState } from "../../state/UrlState.ts"

/** The filters of a list of payments, kept in the address. */
export const usePaymentFilters = () => useUrlState("from", "to", "status")

/** Props of {@link PaymentFilters}. */
export interface PaymentFiltersProps {
  /** The statuses to choose from, in words. */
  readonly statuses: ReadonlyArray<string>
}

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

/** The page size of a list: larger if the page itself filters the objects, because the API has no such filter. */
export const pageSizeFor = (passedOverBy: string): number => (passedOverBy === "" ? 25 : 100)
