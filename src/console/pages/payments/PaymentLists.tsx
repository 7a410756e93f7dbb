import type { ComponentChildren } from "preact"
import { call } from "../../api/Call.ts"
import { Id } from "../../components/Copy.tsx"
import { SelectField, TextField } from "../../components/Field.tsx"
import { Filters } from "../../components/Filters.tsx"
import { Empty, Pages } from "../../components/Loaded.tsx"
import { Money } from "../../components/Money.tsx"
import { Table } from "../../components/Table.tsx"
import { Time } from "../../components/Time.tsx"
import { usePages } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { useUrlState } from "../../state/UrlState.ts"
import { createdWithin } from "./Days.ts"
import type { Charge, CheckoutSession, PaymentIntent } from "./PaymentRecord.ts"
import { textAt } from "./Reading.ts"
import { StatusBadge } from "./StatusBadge.tsx"
import { chargeStatus, intentStatus, methodOf, type Status, sessionStatus } from "./Statuses.ts"

/** The lists of payment intents, charges and checkout sessions. */

/** The filters of a list of payments, kept in the address. */
const usePaymentFilters = () => useUrlState("from", "to", "status")

/** Props of {@link PaymentFilters}. */
interface PaymentFiltersProps {
  /** The statuses to choose from, in words. */
  readonly statuses: ReadonlyArray<string>
}

const PaymentFilters = ({ statuses }: PaymentFiltersProps) => {
  const [{ from, status, to }, change] = usePaymentFilters()
  const isFiltered = status !== "" || from !== "" || to !== ""
  return (
    <Filters {...(isFiltered ? { onClear: () => change({ from: "", to: "", status: "" }) } : {})}>
      <SelectField
        name="status"
        label="Status"
        value={status}
        onChange={(chosen) => change({ status: chosen })}
        options={[{ value: "", label: "All" }, ...statuses.map((words) => ({ value: words, label: words }))]}
      />
      <TextField name="from" label="From" type="date" value={from} onChange={(day) => change({ from: day })} />
      <TextField name="to" label="To" type="date" value={to} onChange={(day) => change({ to: day })} />
    </Filters>
  )
}

/** The page size of a list: larger if the page itself filters the objects, because the API has no such filter. */
const pageSizeFor = (passedOverBy: string): number => (passedOverBy === "" ? 25 : 100)

interface Identified {
  readonly id: string
}

const idOf = ({ id }: Identified): string => id

const pageQuery = (status: string, after: string | undefined) => ({
  limit: pageSizeFor(status),
  ...(after === undefined ? {} : { starting_after: after })
})

interface MatchingProps<A> {
  readonly items: ReadonlyArray<A>
  readonly statusOf: (item: A) => Status
  /** The selected status in words; `""` for all. */
  readonly status: string
  readonly hasMore: boolean
  readonly children: (matching: ReadonlyArray<A>) => ComponentChildren
}

/**
 * Passes on the items with the selected status. The provider lists payments and charges only by time, so this page
 * filters them itself.
 */
const Matching = <A,>({ children, hasMore, items, status, statusOf }: MatchingProps<A>) => {
  if (status === "") return <>{children(items)}</>
  const matching = items.filter((item) => statusOf(item).words === status)
  return (
    <>
      <p class="quiet" role="status">
        {matching.length === 0 ? "None" : matching.length} of the {items.length} newest{" "}
        {matching.length === 1 ? "is" : "are"} “{status}”.{hasMore ? " Load more to look further back." : ""}
      </p>
      {matching.length > 0 && children(matching)}
    </>
  )
}

/** An amount in a list. */
const Amount = ({
  amount,
  currency
}: {
  readonly amount: number | null | undefined
  readonly currency: string | null | undefined
}) => (
  <strong class="amount">
    <Money amount={amount} currency={currency} />
  </strong>
)

const Quiet = ({ children }: { readonly children: string | undefined }) => <span class="quiet">{children ?? "–"}</span>

const intentStatuses = [
  "Succeeded",
  "Not paid",
  "Failed",
  "Processing",
  "Waits for the payer",
  "Authorized",
  "Canceled"
]

/** The list of payment intents: one for each purchase that a payer tried, whatever the outcome. */
export const Intents = () => {
  const { environment, path } = useWorkspace()
  const [{ from, status, to }] = usePaymentFilters()
  const list = usePages<PaymentIntent>(
    `${environment}/payments/intents?${from}&${to}&${pageSizeFor(status)}`,
    (after, signal) =>
      call(
        "paymentIntents",
        "list",
        { urlParams: { ...pageQuery(status, after), ...createdWithin(from, to) } },
        { signal }
      ),
    idOf
  )
  const isFiltered = from !== "" || to !== ""
  return (
    <>
      <PaymentFilters statuses={intentStatuses} />
      <Pages list={list} empty={<NoPayments isFiltered={isFiltered} />}>
        {(items) => (
          <Matching items={items} status={status} statusOf={intentStatus} hasMore={list.hasMore}>
            {(matching) => (
              <Table
                caption="Payments, newest first"
                head={["Amount", "Status", "Description", "Payment", "Created"]}
                rows={matching.map((intent) => ({
                  key: intent.id,
                  href: path(`/payments/${intent.id}`),
                  cells: [
                    <Amount key="amount" amount={intent.amount} currency={intent.currency} />,
                    <StatusBadge key="status" status={intentStatus(intent)} />,
                    <Quiet key="description">{textAt(intent, "description")}</Quiet>,
                    <Id key="id" value={intent.id} />,
                    <Time key="created" at={intent.created} />
                  ]
                }))}
              />
            )}
          </Matching>
        )}
      </Pages>
    </>
  )
}

const NoPayments = ({ isFiltered }: { readonly isFiltered: boolean }) =>
  isFiltered ? (
    <Empty title="No payments in this time">Choose another time, or clear the filters.</Empty>
  ) : (
    <Empty title="No payments yet">
      A payment appears here once a payer opens a checkout session, a payment link or a checkout page. Create one to see
      how it goes.
    </Empty>
  )

const chargeStatuses = ["Succeeded", "Partly refunded", "Refunded", "Disputed", "Authorized", "Pending", "Failed"]

/** The list of charges: each attempt to collect a payer's money, with later refunds and disputes. */
export const Charges = () => {
  const { environment, path } = useWorkspace()
  const [{ from, status, to }] = usePaymentFilters()
  const list = usePages<Charge>(
    `${environment}/payments/charges?${from}&${to}&${pageSizeFor(status)}`,
    (after, signal) =>
      call("charges", "list", { urlParams: { ...pageQuery(status, after), ...createdWithin(from, to) } }, { signal }),
    idOf
  )
  return (
    <>
      <PaymentFilters statuses={chargeStatuses} />
      <Pages list={list} empty={<NoPayments isFiltered={from !== "" || to !== ""} />}>
        {(items) => (
          <Matching items={items} status={status} statusOf={chargeStatus} hasMore={list.hasMore}>
            {(matching) => (
              <Table
                caption="Charges, newest first"
                head={["Amount", "Status", "Refunded", "Method", "Charge", "Created"]}
                rows={matching.map((charge) => ({
                  key: charge.id,
                  href: path(`/payments/${charge.payment_intent ?? charge.id}`),
                  cells: [
                    <Amount key="amount" amount={charge.amount} currency={charge.currency} />,
                    <StatusBadge key="status" status={chargeStatus(charge)} />,
                    (charge.amount_refunded ?? 0) > 0 ? (
                      <Money key="refunded" amount={charge.amount_refunded} currency={charge.currency} />
                    ) : (
                      <Quiet key="refunded">{undefined}</Quiet>
                    ),
                    <Quiet key="method">{methodOf(charge)}</Quiet>,
                    <Id key="id" value={charge.id} />,
                    <Time key="created" at={charge.created} />
                  ]
                }))}
              />
            )}
          </Matching>
        )}
      </Pages>
    </>
  )
}

/** The API's filter for each status in words; `apart` names the statuses that only this page can tell apart. */
const sessionStatuses = {
  Open: { asked: "open", apart: "" },
  Paid: { asked: "complete", apart: "Paid" },
  "Waits for payment": { asked: "complete", apart: "Waits for payment" },
  Complete: { asked: "complete", apart: "Complete" },
  Expired: { asked: "expired", apart: "" }
} as const

const isSessionStatus = (words: string): words is keyof typeof sessionStatuses => Object.hasOwn(sessionStatuses, words)

/** The list of checkout sessions at the provider's page. */
export const Sessions = ({ action }: { readonly action: ComponentChildren }) => {
  const { environment, path } = useWorkspace()
  const [{ from, status, to }] = usePaymentFilters()
  const { apart, asked } = isSessionStatus(status) ? sessionStatuses[status] : { asked: undefined, apart: "" }
  const query = { ...(asked === undefined ? {} : { status: asked }), ...createdWithin(from, to) }
  const list = usePages<CheckoutSession>(
    `${environment}/payments/sessions?${JSON.stringify(query)}&${pageSizeFor(apart)}`,
    (after, signal) =>
      call("checkoutSessions", "list", { urlParams: { ...pageQuery(apart, after), ...query } }, { signal }),
    idOf
  )
  return (
    <>
      <PaymentFilters statuses={Object.keys(sessionStatuses)} />
      <Pages
        list={list}
        empty={
          Object.keys(query).length > 0 ? (
            <Empty title="No checkout session matches">Choose another status or time, or clear the filters.</Empty>
          ) : (
            <Empty title="No checkout sessions yet" action={action}>
              A checkout session is a page of the provider at which one payer pays for one order. Your integration
              creates them, and so do payment links and checkout pages.
            </Empty>
          )
        }
      >
        {(items) => (
          <Matching items={items} status={apart} statusOf={sessionStatus} hasMore={list.hasMore}>
            {(matching) => (
              <Table
                caption="Checkout sessions, newest first"
                head={["Amount", "Status", "Sells", "Reference", "Session", "Created"]}
                rows={matching.map((session) => ({
                  key: session.id,
                  href: path(`/payments/${session.id}`),
                  cells: [
                    <Amount key="amount" amount={session.amount_total} currency={session.currency} />,
                    <StatusBadge key="status" status={sessionStatus(session)} />,
                    <Quiet key="mode">{session.mode === "subscription" ? "A subscription" : "Once"}</Quiet>,
                    <Quiet key="reference">{session.client_reference_id ?? undefined}</Quiet>,
                    <Id key="id" value={session.id} />,
                    <Time key="created" at={session.created} />
                  ]
                }))}
              />
            )}
          </Matching>
        )}
      </Pages>
    </>
  )
}
