import { TextField } from "../../components/Field.tsx"
import { localInput, unixSeconds } from "./times.ts"

interface TimeFieldsProps {
  /** Unix seconds; "" for none. */
  readonly from: string
  readonly to: string
  readonly onChange: (change: { readonly from?: string; readonly to?: string }) => void
}

/** From when to when, in the reader's zone; the address has Unix seconds. */
export const TimeFields = ({ from, onChange, to }: TimeFieldsProps) => (
  <>
    <TextField
      name="from"
      label="From"
      type="datetime-local"
      value={localInput(from)}
      onChange={(value) => onChange({ from: unixSeconds(value) })}
      problem={from !== "" && to !== "" && Number(from) > Number(to) ? "This is after the end" : undefined}
    />
    <TextField
      name="to"
      label="To"
      type="datetime-local"
      value={localInput(to)}
      onChange={(value) => onChange({ to: unixSeconds(value) })}
    />
  </>
)
