import { Button } from "../../components/Button.tsx"
import { Checkbox, FieldGroup, Reason } from "../../components/forms/Field.tsx"
import { useRefusal } from "../../components/forms/Form.tsx"
import { type EventType, familiesOf, isEventType } from "../events/eventTypes.ts"

interface EventTypePickerProps {
  readonly catalog: ReadonlyArray<{ readonly type: string; readonly description: string }>
  readonly chosen: ReadonlySet<EventType>
  readonly onChange: (chosen: ReadonlySet<EventType>) => void
  readonly problem?: string | undefined
}

const both = (one: ReadonlySet<EventType>, other: Iterable<EventType>): ReadonlySet<EventType> =>
  new Set([...one, ...other])

const without = (one: ReadonlySet<EventType>, other: Iterable<EventType>): ReadonlySet<EventType> => {
  const left = new Set(one)
  for (const type of other) left.delete(type)
  return left
}

export const EventTypePicker = ({ catalog, chosen, onChange, problem }: EventTypePickerProps) => {
  const reason = useRefusal("events", "Event types") ?? problem
  return (
    <div class="event-types">
      <Reason role="alert" text={reason} />
      {familiesOf(catalog).map(({ label, name, types }) => {
        const known = types.map(({ type }) => type).filter(isEventType)
        const all = known.every((type) => chosen.has(type))
        return (
          <FieldGroup label={label} key={name}>
            {known.length > 1 ? (
              <div class="event-types-all">
                <Button
                  kind="quiet"
                  small
                  label={all ? `None of ${label.toLowerCase()}` : `All ${label.toLowerCase()}`}
                  onClick={() => onChange(all ? without(chosen, known) : both(chosen, known))}
                >
                  {all ? "None" : "All"}
                </Button>
              </div>
            ) : null}
            {types.map(({ description, type }) =>
              isEventType(type) ? (
                <Checkbox
                  key={type}
                  name={`type ${type}`}
                  label={type}
                  hint={description}
                  value={chosen.has(type)}
                  onChange={(checked) => onChange(checked ? both(chosen, [type]) : without(chosen, [type]))}
                />
              ) : null
            )}
          </FieldGroup>
        )
      })}
    </div>
  )
}
