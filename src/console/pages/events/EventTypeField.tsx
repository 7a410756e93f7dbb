import { FilterField } from "../../components/forms/Field.tsx"
import { eventTypes } from "./eventTypes.ts"

export const EventTypeField = (props: { readonly value: string; readonly onChange: (type: string) => void }) => (
  <FilterField {...props} name="type" label="Event type" options={eventTypes.map((type) => [type, type])} />
)
