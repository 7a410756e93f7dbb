import { SelectField, TextField } from "../../components/Field.tsx"
import { Filters } from "../../components/Tabs.tsx"
import { useUrlState } from "../../state/UrlState.ts"

/** The filters of a list of payments, which live in the address. */
export const usePaymentFilters = () => useUrlState("from", "to", "status")

/** What {@link PaymentFilters} offers. */
export interface PaymentFiltersProps {
  /** The states to choose from, in words. */
  readonly statuses: ReadonlyArray<string>
  /** Whether the list can be narrowed by time. */
  readonly byTime: boolean
}

/** A row of filters above a list of payments. */
export const PaymentFilters = ({ byTime, statuses }: PaymentFiltersProps) => {
  const [{ from, status, to }, change] = usePaymentFilters()
  const isFiltered = status !== "" || (byTime && (from !== "" || to !== ""))
  return (
    <Filters {...(isFiltered ? { onClear: () => change({ from: "", to: "", status: "" }) } : {})}>
      <SelectField
        name="status"
        label="Status"
        value={status}
        onChange={(chosen) => change({ status: chosen })}
        options={[{ value: "", label: "All" }, ...statuses.map((words) => ({ value: words, label: words }))]}
      />
      {byTime && (
        <>
          <TextField name="from" label="From" type="date" value={from} onChange={(day) => change({ from: day })} />
          <TextField name="to" label="To" type="date" value={to} onChange={(day) => change({ to: day })} />
        </>
      )}
    </Filters>
  )
}

/** How many objects a page of a list has: more if a filter that the API does not have passes over some of them. */
export const pageSizeFor = (status: string): number => (status === "" ? 25 : 100)
