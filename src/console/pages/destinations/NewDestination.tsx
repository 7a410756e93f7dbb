import { useEffect, useRef, useState } from "preact/hooks"
import { type AnswerOf, call } from "../../api/Call.ts"
import { Button, ButtonLink } from "../../components/Button.tsx"
import { type Draft, useDraft } from "../../components/forms/Draft.ts"
import { TextField } from "../../components/forms/Field.tsx"
import { Form } from "../../components/forms/Form.tsx"
import { Reader } from "../../components/forms/Reader.ts"
import { Loaded } from "../../components/Loaded.tsx"
import { Notice } from "../../components/Notice.tsx"
import { Page, Section } from "../../components/Page.tsx"
import { useWorkspace } from "../../state/Session.ts"
import type { EventType } from "../events/eventTypes.ts"
import { EventTypePicker } from "./EventTypePicker.tsx"
import { FilterFields } from "./FilterFields.tsx"
import { emptyFilterForm, filtersOfForm } from "./filterForm.ts"
import { NewSecret } from "./NewSecret.tsx"
import { suggestedName, urlProblem } from "./nameAndUrl.ts"
import { Snippets } from "./Snippets.tsx"
import { type DestinationList, useDestinations } from "./useDestinations.ts"
import { Warnings } from "./Warnings.tsx"

type Created = AnswerOf<"endpoints", "create">

const noTypes: ReadonlySet<EventType> = new Set()
const empty = { url: "", name: "", types: noTypes, filters: emptyFilterForm }

const readNew = ({ filters: form, name, types, url }: typeof empty) => {
  const reader = new Reader()
  const { filters, problems } = filtersOfForm(form)
  const wrongUrl = url.trim() === "" ? "Write the receiver’s URL" : urlProblem(url)
  Object.assign(reader.problems, problems, wrongUrl === undefined ? {} : { url: wrongUrl })
  if (types.size === 0) reader.problems["events"] = "Choose at least one event type"
  const given = name.trim() === "" ? suggestedName(url) : name.trim()
  return reader.done({ name: given, url: url.trim(), events: [...types], filters })
}

const Receiver = ({ draft: { url }, field, problems }: Pick<Draft<typeof empty>, "draft" | "field" | "problems">) => (
  <Section title="Where to">
    <TextField
      {...field("url")}
      label="URL"
      type="url"
      required
      hint="Public HTTPS, without a query; it can’t be changed later."
      placeholder="https://shop.example/webhooks"
      maxLength={2048}
      problem={urlProblem(url) ?? problems["url"]}
      monospace
    />
    <TextField
      {...field("name")}
      label="Name"
      required={false}
      hint="For you and your team. Without one it is named after its host."
      placeholder={suggestedName(url)}
      maxLength={100}
    />
  </Section>
)

const NewForm = ({
  catalog,
  onCreated
}: {
  readonly catalog: DestinationList["eventTypes"]
  readonly onCreated: (created: Created) => void
}) => {
  const { path } = useWorkspace()
  const { form, ...creation } = useDraft({
    initial: empty,
    read: readNew,
    send: (payload, idempotencyKey) => call("endpoints", "create", { payload }, { idempotencyKey }),
    onDone: onCreated
  })
  const { filters, types } = creation.draft
  const { onChange, problem } = creation.field("types", "events")
  return (
    <Form
      {...form}
      actions={
        <>
          <Button kind="primary" type="submit" busy={form.submission.busy}>
            Create destination
          </Button>
          <ButtonLink href={path("/destinations")}>Cancel</ButtonLink>
        </>
      }
    >
      <Receiver {...creation} />
      <Section title="What it gets" lead={`${types.size} of ${catalog.length} event types chosen.`}>
        <EventTypePicker catalog={catalog} chosen={types} onChange={onChange} problem={problem} />
      </Section>
      <Section
        title="Filters"
        lead="Optional. All that are set have to match; without any, every event of the chosen types is sent."
      >
        <FilterFields form={filters} onChange={creation.field("filters").onChange} types={types} />
      </Section>
      {Object.keys(creation.problems).length === 0 ? null : (
        <Notice tone="problem">
          <p>Something is missing or wrong. Check the messages above.</p>
        </Notice>
      )}
    </Form>
  )
}

const CreatedView = ({ created }: { readonly created: Created }) => {
  const { environment, path } = useWorkspace()
  const secret = useRef<HTMLDivElement>(null)
  // The form that it replaces was scrolled to its end
  useEffect(() => {
    scrollTo(0, 0)
    secret.current?.focus()
  }, [])
  return (
    <>
      <Warnings of={created} />
      <Section title="Its secret" lead={`${created.name} gets signed events at ${created.url} from now on.`}>
        <div ref={secret} tabIndex={-1}>
          <NewSecret {...created} />
        </div>
      </Section>
      <Section title="Verify its events">
        <Snippets secret={created.signingSecret} />
      </Section>
      <div class="form-actions">
        <ButtonLink href={path(`/destinations/${created.id}`)} kind="primary">
          {environment === "sandbox" ? "Next: send a test event" : "Open the destination"}
        </ButtonLink>
      </div>
    </>
  )
}

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
