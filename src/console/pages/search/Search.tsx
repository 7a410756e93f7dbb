import { Redirect } from "wouter-preact"
import { useHistoryState } from "wouter-preact/use-browser-location"
import { call } from "../../api/Call.ts"
import { itemsAt, numberAt, textAt } from "../../api/Reading.ts"
import { formatAmount } from "../../components/amounts.ts"
import { StatusBadge } from "../../components/Badge.tsx"
import { Empty, Loaded } from "../../components/Loaded.tsx"
import { Money } from "../../components/Money.tsx"
import { Notice } from "../../components/Notice.tsx"
import { Page, Section } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { Time } from "../../components/Time.tsx"
import { useQuery } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { EventTable } from "../events/EventTable.tsx"
import { orderOf, soldOf } from "../payments/Sale.tsx"
import { intentStatus, sessionStatus } from "../payments/Statuses.ts"
import { lookUpOf } from "./lookUps.ts"
import { type Asked, searchesOf } from "./terms.ts"

type Hit = { readonly id: string }

const isSession = (hit: Hit): boolean => hit.id.startsWith("cs_")

const moneyOf = (hit: Hit) => ({
  amount: numberAt(hit, isSession(hit) ? "amount_total" : "amount"),
  currency: textAt(hit, "currency")
})

const Hits = ({ hits }: { readonly hits: ReadonlyArray<Hit> }) => {
  const { path } = useWorkspace()
  return (
    <Table
      caption="Payments and sessions found, newest first"
      items={hits}
      href={({ id }) => path(`/payments/${id}`)}
      columns={[
        { head: "Amount", cell: (hit) => <Money {...moneyOf(hit)} /> },
        {
          head: "Status",
          cell: (hit) => <StatusBadge status={(isSession(hit) ? sessionStatus : intentStatus)(hit)} />
        },
        { head: "Sold", cell: (hit) => soldOf(hit) ?? "–" },
        { head: "Order", cell: (hit) => orderOf(hit) ?? "–" },
        { head: "Payer", cell: (hit) => textAt(hit, "customer_details", "email") ?? "–" },
        { head: "Created", cell: (hit) => <Time at={numberAt(hit, "created")} /> }
      ]}
    />
  )
}

const titleOf = ({ amount, currency, email }: Asked): string => {
  if (email !== undefined) return "Checkout sessions with this e-mail address"
  return amount === undefined
    ? "Checkout sessions of this order"
    : `Payments of ${formatAmount(amount, currency ?? "usd").replace(/^\$/, currency === undefined ? "" : "$")}`
}

const notFound: Readonly<Record<"email" | "reference" | "amount", string>> = {
  email: "No payer gave this address. It has to be the whole address.",
  reference:
    "No session of the last 90 days has this reference. It has to be the whole reference, as your shop sent it.",
  amount: "No payment has this amount. Write the currency with it if it has no cents, such as 1500 JPY."
}

const Found = ({ asked }: { readonly asked: Asked }) => {
  const query = useQuery(`search/${JSON.stringify(asked)}`, (signal) =>
    call("search", "payments", { payload: asked }, { signal })
  )
  const kind = asked.email !== undefined ? "email" : asked.amount !== undefined ? "amount" : "reference"
  return (
    <Section title={titleOf(asked)}>
      <Loaded query={query} lines={2}>
        {(page) => {
          const hits = itemsAt(page, "data").flatMap((hit) => {
            const id = textAt(hit, "id")
            return id === undefined ? [] : [{ ...Object(hit), id }]
          })
          return (
            <>
              {hits.length === 0 ? <p class="quiet">{notFound[kind]}</p> : <Hits hits={hits} />}
              {page.has_more ? <p class="quiet">There are more: these are the newest.</p> : null}
            </>
          )
        }}
      </Loaded>
    </Section>
  )
}

/** Events of a payment with this id: the team's own events may name payments in any way. */
const Events = ({ payment }: { readonly payment: string }) => {
  const query = useQuery(`events/of-payment/${payment}/found`, (signal) =>
    call("events", "list", { urlParams: { payment_id: payment, limit: 25 } }, { signal })
  )
  const events = query.data?.data ?? []
  return events.length === 0 ? null : (
    <Section title="Events of this payment">
      <EventTable caption="Events, newest first" items={events} />
    </Section>
  )
}

const LookedUp = ({
  text,
  find
}: {
  readonly text: string
  readonly find: NonNullable<ReturnType<typeof lookUpOf>>
}) => {
  const { path } = useWorkspace()
  const query = useQuery(`search/id/${text}`, async (signal) => ({ page: await find(signal) }))
  return (
    <Loaded query={query} lines={2}>
      {({ page }) =>
        page === undefined ? (
          <Empty title="Nothing has this id">It may be of the other workspace, or removed by now.</Empty>
        ) : (
          <Redirect to={path(page)} replace />
        )
      }
    </Loaded>
  )
}

const Results = ({ text }: { readonly text: string }) => {
  const { can } = useWorkspace()
  const lookUp = lookUpOf(text)
  if (lookUp !== undefined) return <LookedUp key={text} text={text} find={lookUp} />
  const searches = searchesOf(text)
  if (searches.some(({ email }) => email !== undefined) && !can("customers:read")) {
    return (
      <Notice tone="info">
        <p>
          Only owners and admins see e-mail addresses, and search by them. Search by the order’s reference or amount.
        </p>
      </Notice>
    )
  }
  return (
    <>
      {can("payments:read", "search.payments")
        ? searches.map((asked) => <Found key={JSON.stringify(asked)} asked={asked} />)
        : null}
      {can("webhook-endpoints:read") && /^\w{3,255}$/.test(text) ? <Events key={text} payment={text} /> : null}
    </>
  )
}

/** The results of the search field. The text is not in the address: addresses of pages end up in logs. */
export default function Search() {
  const state = useHistoryState<{ readonly search?: string } | null>()
  const text = state?.search ?? ""
  return (
    <Page
      title={text === "" ? "Search" : `Search: ${text}`}
      lead="Whole order references, e-mail addresses, amounts and ids are found; parts of them are not. A payment’s page has its events and deliveries."
    >
      {text === "" ? <Empty title="Type something in the search field" /> : <Results text={text} />}
    </Page>
  )
}
