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

/** Labels for the recorded actions. Unknown actions of a later version are shown unchanged. */
const actionLabels: Readonly<Record<string, string>> = {
  "organization.created": "Created the organization",
  "organization.updated": "Renamed the organization",
  "organization.closed": "Closed the organization",
  "member.added": "Added a member",
  "member.updated": "Changed a member",
  "member.removed": "Removed a member",
  "invitation.created": "Invited a person",
  "invitation.revoked": "Revoked an invitation",
  "invitation.accepted": "Accepted an invitation",
  "session.started": "Signed in",
  "session.ended": "Signed out",
  "api_key.created": "Created an API key",
  "api_key.revoked": "Revoked an API key",
  "return_urls.updated": "Changed the return pages",
  "account.onboarding_started": "Began to connect the account",
  "account.linked": "Connected the account",
  "account.unlinked": "Unlinked the account",
  "account.disconnected": "Disconnected the account",
  "endpoint.created": "Created a destination",
  "endpoint.updated": "Changed a destination",
  "endpoint.deleted": "Deleted a destination",
  "endpoint.secret_rotated": "Rotated a signing secret",
  "endpoint.tested": "Sent a test event",
  "event.triggered": "Triggered an event",
  "delivery.resent": "Re-sent a delivery",
  "recovery.started": "Recovered failed deliveries",
  "event_replay.started": "Started a replay",
  "event_replay.canceled": "Canceled a replay",
  "product.created": "Created a product",
  "product.updated": "Changed a product",
  "price.created": "Created a price",
  "price.updated": "Changed a price",
  "promotion_code.created": "Created a promotion code",
  "promotion_code.updated": "Changed a promotion code",
  "payment_link.created": "Created a payment link",
  "payment_link.updated": "Changed a payment link",
  "checkout_page.created": "Created a checkout page",
  "checkout_page.updated": "Changed a checkout page",
  "checkout_page.deleted": "Deleted a checkout page",
  "checkout_session.created": "Created a checkout session",
  "checkout_session.expired": "Expired a checkout session",
  "subscription.updated": "Changed a subscription",
  "subscription.canceled": "Canceled a subscription",
  "refund.created": "Refunded a payment",
  "product_image.uploaded": "Uploaded a product image",
  "product_image.removed": "Removed a product image",
  "receipt.replayed": "Handled a notification again"
}

const actionWords = (action: string): string =>
  Object.hasOwn(actionLabels, action) ? (actionLabels[action] ?? action) : action

const knownActions: ReadonlyArray<string> = Object.keys(actionLabels)

const targetWord = (type: string): string => type.replaceAll("_", " ")

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
