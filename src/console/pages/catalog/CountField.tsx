import { type Described, TextField } from "../../components/Field.tsx"
import { notANumber, readCount } from "../../components/Reader.ts"

/** A field for a whole number; reports anything else, and with `required` also an empty field. */
export const CountField = ({
  problem,
  ...field
}: Described & { readonly value: string; readonly onChange: (value: string) => void }) => {
  const written = readCount(field.value)
  const isWrong = written === "unreadable" || (written === "empty" && field.required === true)
  return <TextField {...field} inputMode="numeric" maxLength={12} problem={isWrong ? notANumber : problem} />
}
