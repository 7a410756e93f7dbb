import type { ComponentChildren } from "preact"
import { TextField } from "../../components/Field.tsx"
import { readCount } from "./Counts.ts"

export interface CountFieldProps {
  readonly name: string
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
  readonly hint?: ComponentChildren
  /** Reports an empty field at once. */
  readonly required?: boolean
  readonly problem?: string | undefined
}

/** A field for a whole number; reports anything else. */
export const CountField = ({ hint, label, name, onChange, problem, required, value }: CountFieldProps) => {
  const written = readCount(value)
  const own =
    written === "unreadable" || (written === "empty" && required === true)
      ? "Write a whole number, in digits."
      : problem
  return (
    <TextField
      name={name}
      label={label}
      hint={hint}
      {...(required === undefined ? {} : { required })}
      inputMode="numeric"
      maxLength={12}
      value={value}
      onChange={onChange}
      problem={own}
    />
  )
}
