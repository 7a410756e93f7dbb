import { SelectField } from "../../components/Field.tsx"
import { eventTypes } from "./eventTypes.ts"

export interface EventTypeFieldProps {
  /** The selected type; `""` for all. */
  readonly value: string
  readonly onChange: (type: string) => void
}

export const EventTypeField = ({ onChange, value }: EventTypeFieldProps) => (
  <SelectField
    name="type"
    label="Event type"
    value={value}
    onChange={onChange}
    options={[{ value: "", label: "All" }, ...eventTypes.map((type) => ({ value: type, label: type }))]}
  />
)
