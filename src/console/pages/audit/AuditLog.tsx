import { type AnswerOf, call } from "../../api/Call.ts"
import { plainWords } from "../../api/Reading.ts"
import { useAuthorNames, useMembers } from "../../components/Author.tsx"
import { Badge } from "../../components/Badge.tsx"
import { Id } from "../../components/Copy.tsx"
import { Filters } from "../../components/Filters.tsx"
import { DayFields, FilterField } from "../../components/forms/Field.tsx"
import { filled } from "../../components/forms/Reader.ts"
import { Empty, PagedTable } from "../../components/Loaded.tsx"
import { Page } from "../../components/Page.tsx"
import { Time } from "../../components/Time.tsx"
import { usePages } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { useUrlFilters } from "../../state/UrlState.ts"
import { createdWithin } from "../payments/Days.ts"

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

const filterNames = ["action", "author", "from", "to"] as const

type AuditFilters = ReturnType<typeof useUrlFilters<(typeof filterNames)[number]>>

const FilterRow = ({ field, filters, onClear }: AuditFilters) => {
  const members = useMembers().data?.data
  // A link may name a former member or a key
  const isOther = filters.author !== "" && members?.every(({ personId }) => personId !== filters.author) !== false
  return (
    <Filters onClear={onClear}>
      <FilterField {...field("action")} label="Action" options={Object.entries(actionLabels)} />
      <FilterField
        {...field("author")}
        label="Person"
        options={[
          ...(members ?? []).map(({ email, personId }) => [personId, email] as const),
          ...(isOther ? [[filters.author, filters.author] as const] : [])
        ]}
      />
      <DayFields field={field} />
    </Filters>
  )
}

type AuditRecord = AnswerOf<"audit", "list">["data"][number]

const When = ({ at, requestId }: AuditRecord) => (
  <>
    <Time at={at} exact />
    {requestId === "" ? null : (
      <span class="audit-request">
        <Id value={requestId} />
      </span>
    )}
  </>
)

const Records = ({ filters }: Pick<AuditFilters, "filters">) => {
  const authorName = useAuthorNames()
  const query = {
    ...filled({ action: filters.action, author_id: filters.author }),
    ...createdWithin(filters.from, filters.to)
  }
  const records = usePages(
    `audit-log/${JSON.stringify(query)}`,
    (page, signal) => call("audit", "list", { urlParams: { ...page, ...query } }, { signal }),
    { limit: 50 }
  )
  return (
    <PagedTable
      list={records}
      empty={
        Object.keys(query).length > 0 ? (
          <Empty title="Nothing matches these filters">
            <p>Widen the time, or choose another action.</p>
          </Empty>
        ) : (
          <Empty title="Nothing is recorded yet">
            <p>From now on every change leaves a record here.</p>
          </Empty>
        )
      }
      caption="Recorded changes, newest first"
      columns={[
        { head: "When", cell: When },
        { head: "Who", cell: ({ author }) => authorName(author) },
        {
          head: "What",
          cell: ({ action, environment: place }) => (
            <span class="row">
              {actionWords(action)}
              {place === null ? <Badge>Organization</Badge> : null}
            </span>
          )
        },
        {
          head: "Object",
          cell: ({ target }) => (
            <>
              {plainWords(target.type)} <Id value={target.id} />
            </>
          )
        }
      ]}
    />
  )
}

export default function AuditLog() {
  const { can } = useWorkspace()
  const filtering = useUrlFilters(...filterNames)
  if (!can("audit-log:read")) {
    return (
      <Page title="Audit log">
        <Empty title="Only owners and admins read the audit log">
          <p>Ask one of them if you need to know who changed something.</p>
        </Empty>
      </Page>
    )
  }
  return (
    <Page
      title="Audit log"
      lead="Every change in this workspace and in the organization as a whole: who made it, and in which request."
    >
      <FilterRow {...filtering} />
      <Records {...filtering} />
    </Page>
  )
}
