import { call } from "../../api/Call.ts"
import { useAuthorNames } from "../../components/Author.tsx"
import { Badge } from "../../components/Badge.tsx"
import { Id } from "../../components/Copy.tsx"
import { SelectField, TextField } from "../../components/Field.tsx"
import { Filters } from "../../components/Filters.tsx"
import { Empty, Pages } from "../../components/Loaded.tsx"
import { Page } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { Time } from "../../components/Time.tsx"
import { usePages, useQuery } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { useUrlState } from "../../state/UrlState.ts"
import { actionWords, knownActions, targetWord } from "./actions.ts"

/** The first or last second of a day in the reader's zone, as Unix seconds. */
const secondsOf = (day: string, end: boolean): number | undefined => {
  const at = Date.parse(`${day}T${end ? "23:59:59" : "00:00:00"}`)
  return Number.isNaN(at) ? undefined : Math.floor(at / 1000)
}

export default function AuditLog() {
  const { can, environment } = useWorkspace()
  const [filters, change] = useUrlState("action", "author", "from", "to")
  const authorName = useAuthorNames()
  const members = useQuery("organization/members", (signal) => call("members", "list", {}, { signal }))
  const from = secondsOf(filters.from, false)
  const to = secondsOf(filters.to, true)
  const records = usePages(
    can("audit-log:read")
      ? `${environment}/audit-log/${filters.action}/${filters.author}/${from ?? ""}/${to ?? ""}`
      : null,
    (after, signal) =>
      call(
        "audit",
        "list",
        {
          urlParams: {
            limit: 50,
            ...(after === undefined ? {} : { starting_after: after }),
            ...(filters.action === "" ? {} : { action: filters.action }),
            ...(filters.author === "" ? {} : { author_id: filters.author }),
            ...(from === undefined ? {} : { created_gte: from }),
            ...(to === undefined ? {} : { created_lte: to })
          }
        },
        { signal }
      ),
    ({ id }) => id
  )
  if (!can("audit-log:read")) {
    return (
      <Page title="Audit log">
        <Empty title="Only owners and admins read the audit log">
          <p>Ask one of them if you need to know who changed something.</p>
        </Empty>
      </Page>
    )
  }
  const filtered = Object.values(filters).some((value) => value !== "")
  return (
    <Page
      title="Audit log"
      lead="Every change in this workspace and in the organization as a whole: who made it, and in which request."
    >
      <Filters onClear={filtered ? () => change({ action: "", author: "", from: "", to: "" }) : undefined}>
        <SelectField
          name="action"
          label="Action"
          value={filters.action}
          onChange={(action) => change({ action })}
          options={[
            { value: "", label: "All" },
            ...knownActions.map((action) => ({ value: action, label: actionWords(action) }))
          ]}
        />
        <SelectField
          name="author"
          label="Person"
          value={filters.author}
          onChange={(author) => change({ author })}
          options={[
            { value: "", label: "All" },
            ...(members.data?.data ?? []).map(({ email, personId }) => ({ value: personId, label: email })),
            // A link may name a former member or a key
            ...(filters.author !== "" &&
            members.data?.data.every(({ personId }) => personId !== filters.author) !== false
              ? [{ value: filters.author, label: filters.author }]
              : [])
          ]}
        />
        <TextField
          name="from"
          label="From"
          type="date"
          value={filters.from}
          onChange={(day) => change({ from: day })}
        />
        <TextField name="to" label="To" type="date" value={filters.to} onChange={(day) => change({ to: day })} />
      </Filters>
      <Pages
        list={records}
        empty={
          filtered ? (
            <Empty title="Nothing matches these filters">
              <p>Widen the time, or choose another action.</p>
            </Empty>
          ) : (
            <Empty title="Nothing is recorded yet">
              <p>From now on every change leaves a record here.</p>
            </Empty>
          )
        }
      >
        {(items) => (
          <Table
            caption="Recorded changes, newest first"
            head={["When", "Who", "What", "Object"]}
            rows={items.map(({ action, at, author, environment: place, id, requestId, target }) => ({
              key: id,
              cells: [
                <span key="at">
                  <Time at={at} exact />
                  {requestId === "" ? null : (
                    <span class="audit-request">
                      <Id value={requestId} />
                    </span>
                  )}
                </span>,
                authorName(author),
                <span key="action" class="row">
                  {actionWords(action)}
                  {place === null ? <Badge>Organization</Badge> : null}
                </span>,
                <span key="target">
                  {targetWord(target.type)} <Id value={target.id} />
                </span>
              ]
            }))}
          />
        )}
      </Pages>
    </Page>
  )
}
