import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { call } from "../../api/Call.ts"
import { textAt } from "../../api/Reading.ts"
import { isSupported } from "../../api/Supported.ts"
import { StatusBadge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Id } from "../../components/Copy.tsx"
import { Filters } from "../../components/Filters.tsx"
import { DayFields, FilterField } from "../../components/forms/Field.tsx"
import { filled } from "../../components/forms/Reader.ts"
import { Empty, Pages } from "../../components/Loaded.tsx"
import { Money } from "../../components/Money.tsx"
import { Page } from "../../components/Page.tsx"
import { type Column, Table, type TableProps } from "../../components/Table.tsx"
import { Tabs } from "../../components/Tabs.tsx"
import { Time } from "../../components/Time.tsx"
import { type PageOf, type PageQuery, usePages } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { useUrlFilters, useUrlState } from "../../state/UrlState.ts"
import { createdWithin } from "./Days.ts"
import { NewCheckout } from "./NewCheckout.tsx"
import type { Charge, CheckoutSession, PaymentIntent } from "./PaymentRecord.ts"
import { orderOf, SoldAt, soldOf } from "./Sale.tsx"
import { chargeStatus, intentStatus, methodOf, type Status, sessionStatus } from "./Statuses.ts"

/** The page size of a list: larger if the page itself filters the objects, because the API has no such filter. */
const pageSizeFor = (passedOverBy: string): number => (passedOverBy === "" ? 25 : 100)

interface Listed {
  readonly id: string
  readonly created?: number | null | undefined
}

interface PaymentListProps<A> extends Omit<TableProps<A>, "items" | "columns"> {
  readonly kind: "intents" | "charges" | "sessions"
  readonly load: (
    query: PageQuery & ReturnType<typeof createdWithin> & { readonly status?: AskedStatus },
    signal: AbortSignal
  ) => Promise<PageOf<A>>
  readonly statuses: ReadonlyArray<string>
  readonly statusOf: (item: A) => Status
  readonly amountOf: (item: A) => Parameters<typeof Money>[0]
  readonly columns: ReadonlyArray<Column<A>>
  readonly idHead: string
  readonly empty: (isFiltered: boolean) => ComponentChildren
  /** The API's filter for a status in words, and the status if only this page can tell it apart. */
  readonly asks?: (status: string) => { readonly asked: AskedStatus | undefined; readonly apart: string }
}

type PaymentTableProps<A> = Omit<PaymentListProps<A>, "kind" | "load" | "statuses" | "empty" | "asks"> & {
  readonly items: ReadonlyArray<A>
}

const PaymentTable = <A extends Listed>(props: PaymentTableProps<A>) => {
  const { amountOf, columns, idHead, statusOf, ...table } = props
  return (
    <Table
      {...table}
      columns={[
        {
          head: "Amount",
          cell: (item) => (
            <strong class="amount">
              <Money {...amountOf(item)} />
            </strong>
          )
        },
        { head: "Status", cell: (item) => <StatusBadge status={statusOf(item)} /> },
        ...columns,
        { head: idHead, cell: ({ id }) => <Id value={id} /> },
        { head: "Created", cell: ({ created }) => <Time at={created} /> }
      ]}
    />
  )
}

/**
 * A list of payments, filtered by time and status; the address keeps the filters. The provider lists payments and
 * charges only by time, so this page looks for their status itself.
 */
const PaymentList = <A extends Listed>(props: PaymentListProps<A>) => {
  const { asks = (status) => ({ asked: undefined, apart: status }), empty, kind, load, statuses, ...table } = props
  const { field, filters, onClear } = useUrlFilters("from", "to", "status")
  const { from, status, to } = filters
  const { apart, asked } = asks(status)
  const query = { ...filled({ status: asked }), ...createdWithin(from, to) }
  const list = usePages<A>(
    `payments/${kind}?${JSON.stringify(query)}&${pageSizeFor(apart)}`,
    (page, signal) => load({ ...page, ...query }, signal),
    { limit: pageSizeFor(apart) }
  )
  return (
    <>
      <Filters onClear={onClear}>
        <FilterField {...field("status")} label="Status" options={statuses.map((words) => [words, words])} />
        <DayFields field={field} />
      </Filters>
      <Pages list={list} empty={empty(Object.keys(query).length > 0)}>
        {(items) => {
          const matching = apart === "" ? items : items.filter((item) => table.statusOf(item).words === apart)
          return (
            <>
              {apart === "" ? null : (
                <p class="quiet" role="status">
                  {matching.length === 0 ? "None" : matching.length} of the {items.length} newest{" "}
                  {matching.length === 1 ? "is" : "are"} “{apart}”.
                  {list.hasMore ? " Load more to look further back." : ""}
                </p>
              )}
              {matching.length > 0 && <PaymentTable {...table} items={matching} />}
            </>
          )
        }}
      </Pages>
    </>
  )
}

const quiet = (words: string | null | undefined) => <span class="quiet">{words ?? "–"}</span>

const noPayments = (isFiltered: boolean) =>
  isFiltered ? (
    <Empty title="No payments in this time">Choose another time, or clear the filters.</Empty>
  ) : (
    <Empty title="No payments yet">
      A payment appears here once a payer opens a checkout session, a payment link or a checkout page. Create one to see
      how it works.
    </Empty>
  )

/** The list of payment intents: one for each purchase that a payer tried, whatever the outcome. */
const Intents = () => {
  const { path } = useWorkspace()
  return (
    <PaymentList<PaymentIntent>
      kind="intents"
      load={(urlParams, signal) =>
        call("paymentIntents", "list", { urlParams: { ...urlParams, sale: true } }, { signal })
      }
      statuses={["Succeeded", "Not paid", "Failed", "Processing", "Waits for the payer", "Authorized", "Canceled"]}
      statusOf={intentStatus}
      amountOf={({ amount, currency }) => ({ amount, currency })}
      empty={noPayments}
      caption="Payments, newest first"
      href={({ id }) => path(`/payments/${id}`)}
      columns={[
        { head: "Sold", cell: (intent) => quiet(soldOf(intent)) },
        { head: "Order", cell: (intent) => quiet(orderOf(intent)) },
        { head: "Page", cell: (intent) => <SoldAt page={textAt(intent, "sale", "checkout_page")} /> }
      ]}
      idHead="Payment"
    />
  )
}

/** The list of charges: each attempt to collect a payer's money, with later refunds and disputes. */
const Charges = () => {
  const { path } = useWorkspace()
  return (
    <PaymentList<Charge>
      kind="charges"
      load={(urlParams, signal) => call("charges", "list", { urlParams }, { signal })}
      statuses={["Succeeded", "Partly refunded", "Refunded", "Disputed", "Authorized", "Pending", "Failed"]}
      statusOf={chargeStatus}
      amountOf={({ amount, currency }) => ({ amount, currency })}
      empty={noPayments}
      caption="Charges, newest first"
      href={({ id, payment_intent }) => path(`/payments/${payment_intent ?? id}`)}
      columns={[
        {
          head: "Refunded",
          cell: ({ amount_refunded: refunded, currency }) =>
            (refunded ?? 0) > 0 ? <Money amount={refunded} currency={currency} /> : quiet(undefined)
        },
        { head: "Method", cell: (charge) => quiet(methodOf(charge)) }
      ]}
      idHead="Charge"
    />
  )
}

type AskedStatus = "open" | "complete" | "expired"

/** The API's filter for each status in words; `apart` names the statuses that only this page can tell apart. */
const sessionStatuses: ReadonlyMap<string, { readonly asked: AskedStatus; readonly apart: string }> = new Map([
  ["Open", { asked: "open", apart: "" }],
  ["Paid", { asked: "complete", apart: "Paid" }],
  ["Waits for payment", { asked: "complete", apart: "Waits for payment" }],
  ["Complete", { asked: "complete", apart: "Complete" }],
  ["Expired", { asked: "expired", apart: "" }]
])

const Sessions = ({ action }: { readonly action: ComponentChildren }) => {
  const { path } = useWorkspace()
  return (
    <PaymentList<CheckoutSession>
      kind="sessions"
      load={(urlParams, signal) => call("checkoutSessions", "list", { urlParams }, { signal })}
      statuses={[...sessionStatuses.keys()]}
      asks={(status) => sessionStatuses.get(status) ?? { asked: undefined, apart: "" }}
      statusOf={sessionStatus}
      amountOf={({ amount_total: amount, currency }) => ({ amount, currency })}
      empty={(isFiltered) =>
        isFiltered ? (
          <Empty title="No checkout session matches">Choose another status or time, or clear the filters.</Empty>
        ) : (
          <Empty title="No checkout sessions yet" action={action}>
            A checkout session is a page of the provider at which one payer pays for one order. Your integration creates
            them, and so do payment links and checkout pages.
          </Empty>
        )
      }
      caption="Checkout sessions, newest first"
      href={({ id }) => path(`/payments/${id}`)}
      columns={[
        { head: "Order", cell: (session) => quiet(orderOf(session)) },
        { head: "Page", cell: (session) => <SoldAt page={textAt(session, "metadata", "svc_checkout_page")} /> },
        { head: "Sells", cell: ({ mode }) => quiet(mode === "subscription" ? "A subscription" : "Once") }
      ]}
      idHead="Session"
    />
  )
}

export default function Payments() {
  const { can, path } = useWorkspace()
  const [{ tab }] = useUrlState("tab")
  const [isCreating, setCreating] = useState(false)
  const newSession = can("payments:write", "checkoutSessions.create") ? (
    <Button kind="primary" onClick={() => setCreating(true)}>
      New checkout session
    </Button>
  ) : undefined
  const tabs = [
    { id: "payments", label: "Payments", href: path("/payments"), about: "paymentIntents.list" },
    { id: "charges", label: "Charges", href: path("/payments?tab=charges"), about: "charges.list" },
    { id: "sessions", label: "Checkout sessions", href: path("/payments?tab=sessions"), about: "checkoutSessions.list" }
  ] as const
  const items = tabs.filter(({ about }) => isSupported(about))
  const current = items.find(({ id }) => id === tab)?.id ?? items[0]?.id ?? "payments"
  return (
    <Page title="Payments" actions={newSession}>
      <Tabs label="Kinds of payments" current={current} items={items} />
      {current === "payments" && <Intents />}
      {current === "charges" && <Charges />}
      {current === "sessions" && <Sessions action={newSession} />}
      {isCreating && <NewCheckout onClose={() => setCreating(false)} />}
    </Page>
  )
}
