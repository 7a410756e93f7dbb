import { FilterField } from "../../components/forms/Field.tsx"
import { eventTypes } from "./eventTypes.ts"

export const EventTypeField = (field: Pick<Parameters<typeof FilterField>[0], "name" | "value" | "onChange">) => (
  <FilterField {...field} label="Event type" options={eventTypes.map((type) => [type, type])} />
)
