import { useState } from "preact/hooks"
import { useLocation } from "wouter-preact"
import { type AnswerOf, call } from "../../api/Call.ts"
import { Button } from "../../components/Button.tsx"
import { ConfirmButton, Dialog } from "../../components/Dialog.tsx"
import { useFields } from "../../components/forms/Draft.ts"
import { TextField } from "../../components/forms/Field.tsx"
import { Form } from "../../components/forms/Form.tsx"
import { changedFields } from "../../components/forms/Reader.ts"
import { Loaded } from "../../components/Loaded.tsx"
import { Section } from "../../components/Page.tsx"
import { useSubmit } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { type EventType, isEventType } from "../events/eventTypes.ts"
import { EventTypePicker } from "./EventTypePicker.tsx"
import { FilterFields } from "./FilterFields.tsx"
import { type Filters, filtersOfForm, formOfFilters } from "./filterForm.ts"
import { NewSecret } from "./NewSecret.tsx"
import { type Destination, type DestinationList, useDestinations } from "./useDestinations.ts"

interface Editable {
  readonly name: string
  readonly events: ReadonlyArray<EventType>
  readonly filters: Filters
}

const editableOf = ({ events, filters, name }: Destination): Editable => ({
  name,
  events: events.filter(isEventType).toSorted(),
  // Normalized by the form, so that untouched filters compare equal
  filters: filtersOfForm(formOfFilters(filters)).filters
})

/** The destination's values as edited; saving them sends those that differ from the ones last saved. */
const useEdit = (destination: Destination) => {
  const chosen: ReadonlySet<EventType> = new Set(destination.events.filter(isEventType))
  const { name, filters: before } = destination
  const { draft, field } = useFields({ name, types: chosen, form: formOfFilters(before) })
  const [saved, setSaved] = useState(() => editableOf(destination))
  const { filters, problems } = filtersOfForm(draft.form)
  const isComplete = draft.name.trim() !== "" && draft.types.size > 0 && Object.keys(problems).length === 0
  const submission = useSubmit(
    async () => {
      const types = [...draft.types]
      const changes = changedFields(saved, { name: draft.name.trim(), events: types.toSorted(), filters })
      const payload = { ...changes, ...(changes.events === undefined ? {} : { events: types }) }
      await call("endpoints", "update", { path: { id: destination.id }, payload })
      return changes
    },
    (changes) => {
      setSaved((last) => ({ ...last, ...changes }))
      toast("Saved. Events that are already queued stay as they are.")
    }
  )
  const onSubmit = () => {
    if (isComplete) submission.submit()
  }
  return { draft, field, isComplete, form: { submission, onSubmit } }
}

interface EditProps {
  readonly destination: Destination
  readonly catalog: DestinationList["eventTypes"]
}

const Edit = ({ catalog, destination }: EditProps) => {
  const { draft, field, form, isComplete } = useEdit(destination)
  const { name, types } = draft
  return (
    <Form
      {...form}
      actions={
        <Button kind="primary" type="submit" busy={form.submission.busy} disabled={!isComplete}>
          Save changes
        </Button>
      }
    >
      <Section
        title="Edit"
        lead="The URL can’t be changed: create another destination for another URL. Changes don’t affect events that are already queued."
      >
        <TextField
          {...field("name")}
          label="Name"
          required
          maxLength={100}
          problem={name.trim() === "" ? "Give it a name" : undefined}
        />
        <EventTypePicker
          catalog={catalog}
          chosen={types}
          onChange={field("types").onChange}
          problem={types.size === 0 ? "Choose at least one event type" : undefined}
        />
        <h3>Filters</h3>
        <FilterFields form={draft.form} onChange={field("form").onChange} types={types} />
      </Section>
    </Form>
  )
}

const Rotate = ({ destination }: { readonly destination: Destination }) => {
  // Kept in memory only, until the dialog is closed
  const [rotated, setRotated] = useState<AnswerOf<"endpoints", "rotateSecret"> | undefined>(undefined)
  return (
    <Section title="Signing secret" lead="Rotate it if it was lost, or if somebody else may know it.">
      <div>
        <ConfirmButton
          button="Rotate the secret"
          title={`Rotate the secret of ${destination.name}?`}
          confirmLabel="Rotate"
          danger
          typed="ROTATE"
          action={(idempotencyKey) =>
            call("endpoints", "rotateSecret", { path: { id: destination.id } }, { idempotencyKey })
          }
          onDone={setRotated}
        >
          <ul>
            <li>The new secret is shown once, when this is done.</li>
            <li>
              For 24 hours, new events carry two signatures, one with each secret, so that the receiver can change from
              one to the other without a pause.
            </li>
            <li>Deliveries that are already queued keep the present secret, for up to 72 hours.</li>
            <li>After that, the present secret no longer verifies anything.</li>
            <li>If you rotate several times within 24 hours, only the newest two secrets sign.</li>
          </ul>
        </ConfirmButton>
      </div>
      {rotated && (
        <Dialog title="The new signing secret" keep onClose={() => setRotated(undefined)}>
          <NewSecret {...rotated} />
        </Dialog>
      )}
    </Section>
  )
}

const Delete = ({ destination }: { readonly destination: Destination }) => {
  const { path } = useWorkspace()
  const [, navigate] = useLocation()
  return (
    <Section title="Delete" lead="Pause it instead if it is to get events again some day.">
      <div>
        <ConfirmButton
          button="Delete this destination"
          kind="danger"
          title={`Delete ${destination.name}?`}
          confirmLabel="Delete for good"
          danger
          action={() => call("endpoints", "delete", { path: { id: destination.id } })}
          onDone={() => {
            toast(`${destination.name} was deleted.`)
            navigate(path("/destinations"))
          }}
        >
          <ul>
            <li>It can’t be brought back, and its secrets are erased.</li>
            <li>Waiting deliveries end as failed and are no longer sent.</li>
            <li>Its history stays readable, for 30 days.</li>
          </ul>
        </ConfirmButton>
      </div>
    </Section>
  )
}

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
