import { useState } from "preact/hooks"
import { useLocation } from "wouter-preact"
import { type AnswerOf, call } from "../../api/Call.ts"
import { Button } from "../../components/Button.tsx"
import { Confirm, Dialog } from "../../components/Dialog.tsx"
import { TextField } from "../../components/Field.tsx"
import { Form } from "../../components/Form.tsx"
import { Loaded } from "../../components/Loaded.tsx"
import { Section } from "../../components/Page.tsx"
import { invalidate, useSubmit } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { type EventType, isEventType } from "../events/eventTypes.ts"
import { EventTypePicker } from "./EventTypePicker.tsx"
import { FilterFields } from "./FilterFields.tsx"
import { fieldLabels } from "./fieldLabels.ts"
import { type Filters, filtersOfForm, formOfFilters } from "./filterForm.ts"
import { NewSecret } from "./NewSecret.tsx"
import { type Destination, type DestinationList, useDestinations } from "./useDestinations.ts"

/** The fields of a destination that the form can change. */
interface Editable {
  readonly name: string
  readonly events: ReadonlyArray<EventType>
  readonly filters: Filters
}

const editableOf = ({ events, filters, name }: Destination): Editable => ({
  name,
  events: events.filter(isEventType),
  // Normalized by the form, so that untouched filters compare equal
  filters: filtersOfForm(formOfFilters(filters)).filters
})

/** The changed fields. Only these are sent, so that someone else's concurrent change is kept. */
const changesOf = (before: Editable, { events, filters, name }: Editable): Partial<Editable> => ({
  ...(name === before.name ? {} : { name }),
  ...([...events].sort().join() === [...before.events].sort().join() ? {} : { events }),
  ...(JSON.stringify(filters) === JSON.stringify(before.filters) ? {} : { filters })
})

const Edit = ({
  catalog,
  destination
}: {
  readonly destination: Destination
  readonly catalog: DestinationList["eventTypes"]
}) => {
  const { environment } = useWorkspace()
  const [name, setName] = useState(destination.name)
  const [types, setTypes] = useState<ReadonlySet<EventType>>(() => new Set(destination.events.filter(isEventType)))
  const [form, setForm] = useState(() => formOfFilters(destination.filters))
  // The form's initial values, or those last saved
  const [saved, setSaved] = useState(() => editableOf(destination))
  const { filters, problems } = filtersOfForm(form)
  const complete = name.trim() !== "" && types.size > 0 && Object.keys(problems).length === 0
  const { busy, error, submit } = useSubmit(
    async () => {
      const changes = changesOf(saved, { name: name.trim(), events: [...types], filters })
      await call("endpoints", "update", { path: { id: destination.id }, payload: changes })
      return changes
    },
    (changes) => {
      setSaved((before) => ({ ...before, ...changes }))
      toast("Saved. What is queued already stays as it is.")
      invalidate(`${environment}/endpoints`)
    }
  )
  return (
    <Form
      busy={busy}
      error={error}
      labels={fieldLabels}
      onSubmit={() => {
        if (complete) submit()
      }}
      actions={
        <Button kind="primary" type="submit" busy={busy} disabled={!complete}>
          Save changes
        </Button>
      }
    >
      <Section
        title="Edit"
        lead="The URL can’t be changed: create another destination for another URL. Changes don’t affect what is queued."
      >
        <TextField
          name="name"
          label="Name"
          required
          value={name}
          onChange={setName}
          maxLength={100}
          problem={name.trim() === "" ? "Give it a name" : undefined}
        />
        <EventTypePicker
          catalog={catalog}
          chosen={types}
          onChange={setTypes}
          problem={types.size === 0 ? "Choose at least one event type" : undefined}
        />
        <h3>Filters</h3>
        <FilterFields form={form} onChange={setForm} types={types} />
      </Section>
    </Form>
  )
}

const Rotate = ({ destination }: { readonly destination: Destination }) => {
  const { environment } = useWorkspace()
  const [asked, setAsked] = useState(false)
  // Kept in memory only, until the dialog is closed
  const [rotated, setRotated] = useState<AnswerOf<"endpoints", "rotateSecret"> | undefined>(undefined)
  const { busy, error, reset, submit } = useSubmit(
    (idempotencyKey) => call("endpoints", "rotateSecret", { path: { id: destination.id } }, { idempotencyKey }),
    (answer) => {
      setAsked(false)
      setRotated(answer)
      invalidate(`${environment}/endpoints`)
    }
  )
  return (
    <Section title="Signing secret" lead="Rotate it if it may be known to somebody, or if it was lost.">
      <div>
        <Button
          onClick={() => {
            reset()
            setAsked(true)
          }}
        >
          Rotate the secret
        </Button>
      </div>
      <Confirm
        title={`Rotate the secret of ${destination.name}?`}
        open={asked}
        onClose={() => setAsked(false)}
        onConfirm={submit}
        confirmLabel="Rotate"
        danger
        busy={busy}
        error={error}
        typed="ROTATE"
      >
        <ul>
          <li>The new secret is shown once, when this is done.</li>
          <li>
            For 24 hours, new events carry two signatures, one with each secret, so that the receiver can change from
            one to the other without a pause.
          </li>
          <li>Deliveries that are queued already keep the present secret, for up to 72 hours.</li>
          <li>After that the present secret verifies nothing any more.</li>
          <li>If you rotate several times within 24 hours, only the newest two secrets sign.</li>
        </ul>
      </Confirm>
      <Dialog
        title="The new signing secret"
        open={rotated !== undefined}
        onClose={() => setRotated(undefined)}
        keep
        footer={
          <Button kind="primary" onClick={() => setRotated(undefined)}>
            I have stored it
          </Button>
        }
      >
        {rotated === undefined ? null : <NewSecret {...rotated} />}
      </Dialog>
    </Section>
  )
}

const Delete = ({ destination }: { readonly destination: Destination }) => {
  const { environment, path } = useWorkspace()
  const [, navigate] = useLocation()
  const [asked, setAsked] = useState(false)
  const { busy, error, reset, submit } = useSubmit(
    () => call("endpoints", "delete", { path: { id: destination.id } }),
    () => {
      toast(`${destination.name} was deleted.`)
      invalidate(`${environment}/endpoints/list`)
      invalidate(`${environment}/deliveries`)
      navigate(path("/destinations"))
    }
  )
  return (
    <Section title="Delete" lead="Pause it instead if it is to get events again some day.">
      <div>
        <Button
          kind="danger"
          onClick={() => {
            reset()
            setAsked(true)
          }}
        >
          Delete this destination
        </Button>
      </div>
      <Confirm
        title={`Delete ${destination.name}?`}
        open={asked}
        onClose={() => setAsked(false)}
        onConfirm={submit}
        confirmLabel="Delete for good"
        danger
        busy={busy}
        error={error}
      >
        <ul>
          <li>It can’t be brought back, and its secrets are erased.</li>
          <li>Deliveries that wait end as failed and are not sent any more.</li>
          <li>Its history stays readable, for 30 days.</li>
        </ul>
      </Confirm>
    </Section>
  )
}

/** A destination's settings: editing, secret rotation and deletion. */
export const Settings = ({ destination }: { readonly destination: Destination }) => {
  const list = useDestinations()
  return (
    <>
      <Loaded query={list}>{({ eventTypes }) => <Edit destination={destination} catalog={eventTypes} />}</Loaded>
      <Rotate destination={destination} />
      <Delete destination={destination} />
    </>
  )
}
