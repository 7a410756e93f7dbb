import { useEffect, useState } from "preact/hooks"
import { TextField } from "../../components/forms/Field.tsx"
import { localInput, unixSeconds } from "./times.ts"

interface TimeFieldProps {
  readonly name: string
  readonly label: string
  /** Unix seconds; "" for none. */
  readonly seconds: string
  readonly onChange: (seconds: string) => void
  readonly problem?: string | undefined
}

/**
 * A time in the reader's zone. Keeps the typed text while it is not a valid time, since a year is typed digit by digit.
 */
const TimeField = ({ label, name, onChange, problem, seconds }: TimeFieldProps) => {
  const [text, setText] = useState(() => localInput(seconds))
  // Changed from outside: by a link, or by clearing all filters
  useEffect(() => setText((typed) => (unixSeconds(typed) === seconds ? typed : localInput(seconds))), [seconds])
  return (
    <TextField
      name={name}
      label={label}
      type="datetime-local"
      value={text}
      onChange={(typed) => {
        setText(typed)
        const read = unixSeconds(typed)
        if (typed === "" || read !== "") onChange(read)
      }}
      problem={problem}
    />
  )
}

interface TimeFieldsProps {
  /** Unix seconds; "" for none. */
  readonly from: string
  readonly to: string
  readonly onChange: (change: { readonly from?: string; readonly to?: string }) => void
}

/** A time range in the reader's zone, stored in the address as Unix seconds. */
export const TimeFields = ({ from, onChange, to }: TimeFieldsProps) => (
  <>
    <TimeField
      name="from"
      label="From"
      seconds={from}
      onChange={(seconds) => onChange({ from: seconds })}
      problem={from !== "" && to !== "" && Number(from) > Number(to) ? "This is after the end" : undefined}
    />
    <TimeField name="to" label="To" seconds={to} onChange={(seconds) => onChange({ to: seconds })} />
  </>
)
