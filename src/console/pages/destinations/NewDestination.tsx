import { useState } from "preact/hooks"
import { type AnswerOf, call } from "../../api/Call.ts"
import { Button, ButtonLink } from "../../components/Button.tsx"
import { TextField } from "../../components/Field.tsx"
import { Form } from "../../components/Form.tsx"
import { Loaded } from "../../components/Loaded.tsx"
import { Notice } from "../../components/Notice.tsx"
import { Page, Section } from "../../components/Page.tsx"
import { invalidate, useSubmit } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import type { EventType } from "../events/eventTypes.ts"
import { EventTypePicker } from "./EventTypePicker.tsx"
import { FilterFields } from "./FilterFields.tsx"
import { fieldLabels } from "./fieldLabels.ts"
import { emptyFilterForm, filtersOfForm } from "./filterForm.ts"
import { NewSecret } from "./NewSecret.tsx"
import { suggestedName, urlProblem } from "./nameAndUrl.ts"
import { Snippets } from "./Snippets.tsx"
import { type DestinationList, useDestinations } from "./useDestinations.ts"

type Created = AnswerOf<"endpoints", "create">

const NewForm = ({
  catalog,
  onCreated
}: {
  readonly catalog: DestinationList["eventTypes"]
  readonly onCreated: (created: Created) => void
}) => {
  const { environment, path } = useWorkspace()
  const [name, setName] = useState("")
  const [url, setUrl] = useState("")
  const [types, setTypes] = useState<ReadonlySet<EventType>>(new Set())
  const [filterForm, setFilterForm] = useState(emptyFilterForm)
  const [tried, setTried] = useState(false)
  const { filters, problems } = filtersOfForm(filterForm)
  const given = name.trim() === "" ? suggestedName(url) : name.trim()
  const { busy, error, submit } = useSubmit(
    (idempotencyKey) =>
      call(
        "endpoints",
        "create",
        { payload: { name: given, url: url.trim(), events: [...types], filters } },
        { idempotencyKey }
      ),
    (created) => {
      invalidate(`${environment}/endpoints`)
      onCreated(created)
    }
  )
  const wrongUrl = urlProblem(url)
  const complete = url.trim() !== "" && wrongUrl === undefined && types.size > 0 && Object.keys(problems).length === 0
  return (
    <Form
      busy={busy}
      error={error}
      labels={fieldLabels}
      onSubmit={() => {
        setTried(true)
        if (complete) submit()
      }}
      actions={
        <>
          <Button kind="primary" type="submit" busy={busy}>
            Create destination
          </Button>
          <ButtonLink href={path("/destinations")}>Cancel</ButtonLink>
        </>
      }
    >
      <Section title="Where to">
        <TextField
          name="url"
          label="URL"
          type="url"
          required
          hint="Public HTTPS, without a query; it can’t be changed later."
          placeholder="https://shop.example/webhooks"
          value={url}
          onChange={setUrl}
          maxLength={2048}
          problem={wrongUrl ?? (tried && url.trim() === "" ? "Write the receiver’s URL" : undefined)}
          monospace
        />
        <TextField
          name="name"
          label="Name"
          required={false}
          hint="For you and your team. Without one it is named after its host."
          placeholder={suggestedName(url)}
          value={name}
          onChange={setName}
          maxLength={100}
        />
      </Section>
      <Section title="What it gets" lead={`${types.size} of ${catalog.length} event types chosen.`}>
        <EventTypePicker
          catalog={catalog}
          chosen={types}
          onChange={setTypes}
          problem={tried && types.size === 0 ? "Choose at least one event type" : undefined}
        />
      </Section>
      <Section
        title="Filters"
        lead="Optional. All that are set have to match; without any, every event of the chosen types is sent."
      >
        <FilterFields form={filterForm} onChange={setFilterForm} types={types} />
      </Section>
      {tried && !complete ? (
        <Notice tone="problem">
          <p>Something is missing or wrong above; it says there what.</p>
        </Notice>
      ) : null}
    </Form>
  )
}

const CreatedView = ({ created }: { readonly created: Created }) => {
  const { environment, path } = useWorkspace()
  return (
    <>
      <Section title="Its secret" lead={`${created.name} gets signed events at ${created.url} from now on.`}>
        <NewSecret {...created} />
      </Section>
      <Section title="Verify its events">
        <Snippets secret={created.signingSecret} />
      </Section>
      <div class="form-actions">
        <ButtonLink href={path(`/destinations/${created.id}`)} kind="primary">
          {environment === "sandbox" ? "Go on: send a test event" : "Open the destination"}
        </ButtonLink>
      </div>
    </>
  )
}

/** Creates a destination, then shows its secret, only once. */
export default function NewDestination() {
  const { can, path } = useWorkspace()
  const list = useDestinations()
  // Kept in memory only: a reload loses the secret
  const [created, setCreated] = useState<Created | undefined>(undefined)
  return (
    <Page
      title={created === undefined ? "New destination" : created.name}
      back={{ href: path("/destinations"), label: "Destinations" }}
    >
      {created !== undefined ? (
        <CreatedView created={created} />
      ) : can("webhook-endpoints:write") ? (
        <Loaded query={list}>{({ eventTypes }) => <NewForm catalog={eventTypes} onCreated={setCreated} />}</Loaded>
      ) : (
        <Notice tone="info">
          <p>Your role may look at destinations, but not create any. Ask an owner or admin.</p>
        </Notice>
      )}
    </Page>
  )
}
