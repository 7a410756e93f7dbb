import { useEffect, useState } from "preact/hooks"
import { type RangeField, TextField } from "../../components/forms/Field.tsx"
import { localInput, unixSeconds } from "./times.ts"

type TimeFieldProps = Pick<Parameters<typeof TextField>[0], "name" | "label" | "onChange" | "problem"> & {
  /** Unix seconds; "" for none. */
  readonly value: string
}

/**
 * A time in the reader's zone. Keeps the typed text while it is not a valid time, since a year is typed digit by digit.
 */
const TimeField = ({ onChange, value: seconds, ...field }: TimeFieldProps) => {
  const [text, setText] = useState(() => localInput(seconds))
  // Changed from outside: by a link, or by clearing all filters
  useEffect(() => setText((typed) => (unixSeconds(typed) === seconds ? typed : localInput(seconds))), [seconds])
  return (
    <TextField
      {...field}
      type="datetime-local"
      value={text}
      onChange={(typed) => {
        setText(typed)
        const read = unixSeconds(typed)
        if (typed === "" || read !== "") onChange(read)
      }}
    />
  )
}

/** A time range in the reader's zone, stored in the address as Unix seconds. */
export const TimeFields = ({ field }: { readonly field: RangeField }) => {
  const from = field("from")
  const to = field("to")
  const isCrossed = from.value !== "" && to.value !== "" && Number(from.value) > Number(to.value)
  return (
    <>
      <TimeField {...from} label="From" problem={isCrossed ? "This is after the end" : undefined} />
      <TimeField {...to} label="To" />
    </>
  )
}
