import type { ComponentChildren } from "preact"
import { Link } from "wouter-preact"
import { type AnswerOf, call } from "../../api/Call.ts"
import { formatAmount } from "../../components/amounts.ts"
import { Badge } from "../../components/Badge.tsx"
import { ButtonLink } from "../../components/Button.tsx"
import { BarChart } from "../../components/charts/BarChart.tsx"
import { Empty, Loaded } from "../../components/Loaded.tsx"
import { Money } from "../../components/Money.tsx"
import { Notice } from "../../components/Notice.tsx"
import { Page, Section } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { Tabs } from "../../components/Tabs.tsx"
import { useQuery } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { useUrlState } from "../../state/UrlState.ts"
import { historyPath } from "../deliveries/historyFilters.ts"
import {
  type DestinationList,
  shownDays,
  useDestinations,
  useRetrying,
  useStatistics
} from "../destinations/useDestinations.ts"
import {
  byTrouble,
  type CurrencyFigures,
  currenciesOf,
  daysOf,
  deliveryDays,
  deliverySums,
  paymentDays,
  rateText,
  type Statistics
} from "./figures.ts"
import { compactMoney, count, countedUpTo, dayLabel } from "./format.ts"

const Figure = ({
  children,
  label,
  note
}: {
  readonly label: string
  readonly children: ComponentChildren
  readonly note?: ComponentChildren
}) => (
  <div class="figure">
    <dt>{label}</dt>
    <dd>
      <span class="figure-value">{children}</span>
      {note === undefined ? null : <span class="figure-note">{note}</span>}
    </dd>
  </div>
)

const Figures = ({
  currency,
  failing,
  statistics
}: {
  readonly statistics: Statistics
  readonly currency: CurrencyFigures | undefined
  readonly failing: number | undefined
}) => {
  const { delivered, failed, queued, rate } = deliverySums(statistics)
  return (
    <dl class="figures">
      <Figure
        label="Received"
        note={
          currency === undefined ? (
            "no payments yet"
          ) : (
            <>
              {formatAmount(currency.refunded, currency.currency)} refunded
              {currency.refundsFailed === 0 ? null : (
                <>
                  ; {formatAmount(currency.refundFailed, currency.currency)} did not reach the payers,{" "}
                  {count(currency.refundsFailed)} {currency.refundsFailed === 1 ? "refund" : "refunds"} failed
                </>
              )}
            </>
          )
        }
      >
        {currency === undefined ? "–" : formatAmount(currency.received, currency.currency)}
      </Figure>
      <Figure label="Payments" note={currency === undefined ? undefined : `${count(currency.failed)} failed attempts`}>
        {count(currency?.succeeded ?? 0)}
      </Figure>
      <Figure
        label="Delivered"
        note={`${count(delivered)} delivered, ${count(failed)} failed, ${count(queued)} waiting`}
      >
        {rate === null ? "–" : rateText(rate)}
      </Figure>
      <Figure label="Failing destinations" note="in the last 24 hours">
        {failing === undefined ? "…" : count(failing)}
      </Figure>
    </dl>
  )
}

const Payments = ({
  currencies,
  current,
  statistics
}: {
  readonly statistics: Statistics
  readonly currencies: ReadonlyArray<CurrencyFigures>
  readonly current: CurrencyFigures
}) => {
  const { path } = useWorkspace()
  const { currency } = current
  const labels = daysOf(statistics).map(dayLabel)
  const days = paymentDays(statistics, currency)
  return (
    <Section
      title="Payments"
      lead="By the day (UTC) on which they were reported."
      actions={
        currencies.length < 2 ? (
          <Badge tone="neutral">{currency.toUpperCase()}</Badge>
        ) : (
          <Tabs
            label="Currency"
            current={currency}
            items={currencies.map((one) => ({
              id: one.currency,
              label: one.currency.toUpperCase(),
              href: `${path("/")}?currency=${one.currency}`
            }))}
          />
        )
      }
    >
      <div class="chart-pair">
        <div>
          <h3>Volume</h3>
          <BarChart
            title={`Volume by day in ${currency.toUpperCase()}`}
            labels={labels}
            format={(value) => formatAmount(Math.round(value), currency)}
            formatTick={(value) => compactMoney(value, currency)}
            series={[{ label: "Received", tone: "accent", values: days.received }]}
          />
        </div>
        <div>
          <h3>Number</h3>
          <BarChart
            title="Payments by day"
            labels={labels}
            format={count}
            series={[
              { label: "Succeeded", tone: "ok", values: days.succeeded },
              { label: "Failed", tone: "problem", values: days.failed }
            ]}
          />
        </div>
      </div>
    </Section>
  )
}

const Deliveries = ({ statistics }: { readonly statistics: Statistics }) => {
  const { path } = useWorkspace()
  const days = deliveryDays(statistics)
  return (
    <Section
      title="Deliveries"
      lead="By the day on which they were created, and by their outcome now."
      actions={<Link href={path("/deliveries")}>All deliveries</Link>}
    >
      {statistics.deliveries.length === 0 ? (
        <Empty title="No deliveries in these days">Events that are sent to your destinations are counted here.</Empty>
      ) : (
        <BarChart
          title="Deliveries by day"
          labels={daysOf(statistics).map(dayLabel)}
          format={count}
          series={[
            { label: "Delivered", tone: "ok", values: days.delivered },
            { label: "Waiting", tone: "info", values: days.queued },
            { label: "Failed", tone: "problem", values: days.failed }
          ]}
        />
      )}
    </Section>
  )
}

type Troubled = ReturnType<typeof byTrouble<DestinationList["data"][number]>>

const Failing = ({ failing, none }: { readonly failing: Troubled; readonly none: boolean }) => {
  const { can, path } = useWorkspace()
  return failing.length === 0 ? (
    <p class="quiet">
      {none ? (
        <>
          There is no destination yet.{" "}
          {can("webhook-endpoints:write") ? (
            <>
              <Link href={path("/destinations/new")}>Create one</Link> to get events.
            </>
          ) : null}
        </>
      ) : (
        "Nothing has failed for good in the last 24 hours, and nothing waits for another attempt."
      )}
    </p>
  ) : (
    <Table
      caption="Destinations with failures in the last 24 hours"
      items={failing}
      href={({ id, recentFailures }) =>
        path(historyPath({ destination: id, state: recentFailures > 0 ? "failed" : "queued" }))
      }
      columns={[
        { head: "Destination", cell: ({ name }) => name },
        { head: "Failed for good", align: "end", cell: ({ recentFailures }) => countedUpTo(recentFailures) },
        { head: "Waiting", align: "end", cell: ({ waiting }) => count(waiting) }
      ]}
    />
  )
}

type Balance = AnswerOf<"account", "balance">

const Amounts = ({ entries, label }: { readonly label: string; readonly entries: Balance["available"] }) => (
  <div>
    <dt>{label}</dt>
    {(entries ?? []).length === 0 ? <dd class="quiet">–</dd> : null}
    {(entries ?? []).map(({ amount, currency }) => (
      <dd key={currency}>
        <Money amount={amount} currency={currency} />
      </dd>
    ))}
  </div>
)

const BalanceCard = () => {
  const { mayManageOrganization, path } = useWorkspace()
  const query = useQuery("balance", (signal) => call("account", "balance", {}, { signal }), {
    pollMillis: 60_000
  })
  return (
    <Section title="Balance">
      {query.error?.code === "provider_account_not_connected" ? (
        <Empty
          title="No account is connected"
          action={
            mayManageOrganization ? (
              <ButtonLink href={path("/account")} kind="primary">
                Connect the account
              </ButtonLink>
            ) : null
          }
        >
          Payments are received by a connected account.
          {mayManageOrganization ? null : " An owner or admin connects it."}
        </Empty>
      ) : (
        <Loaded query={query} lines={2}>
          {({ available, pending }) => (
            <dl class="balance">
              <Amounts label="Available" entries={available} />
              <Amounts label="Pending" entries={pending} />
            </dl>
          )}
        </Loaded>
      )}
    </Section>
  )
}

/** The statistics, and the destinations with waiting deliveries or recent final failures, the most final failures first. */
const useEvents = (sees: boolean) => {
  const statistics = useStatistics(30_000, sees)
  const destinations = useDestinations(15_000, sees)
  const retrying = useRetrying(sees)
  const failing =
    statistics.data &&
    destinations.data &&
    byTrouble(destinations.data.data, statistics.data, retrying).filter(
      ({ recentFailures, waiting }) => recentFailures + waiting > 0
    )
  return { statistics, destinations, failing }
}

const EventsOverview = ({ failing, statistics }: Pick<ReturnType<typeof useEvents>, "failing" | "statistics">) => {
  const { path } = useWorkspace()
  const [{ currency }] = useUrlState("currency")
  return (
    <Loaded query={statistics} lines={8}>
      {(numbers) => {
        const currencies = currenciesOf(numbers)
        const current = currencies.find((one) => one.currency === currency) ?? currencies[0]
        return (
          <>
            <Figures statistics={numbers} currency={current} failing={failing?.length} />
            {current === undefined ? (
              <Section title="Payments">
                <Empty
                  title="No payments in these days"
                  action={<ButtonLink href={path("/start")}>See what to do first</ButtonLink>}
                >
                  Payments and their volume are drawn here, day by day.
                </Empty>
              </Section>
            ) : (
              <Payments statistics={numbers} currencies={currencies} current={current} />
            )}
            <Deliveries statistics={numbers} />
          </>
        )
      }}
    </Loaded>
  )
}

/** The last 30 days at a glance: payments, deliveries, failures, and the balance. */
export default function Overview() {
  const { can } = useWorkspace()
  const seesEvents = can("webhook-endpoints:read")
  const seesBalance = can("payment-account:read", "account.balance")
  const events = useEvents(seesEvents)
  return (
    <Page title="Overview" lead={`The last ${shownDays} days.`}>
      {seesEvents ? <EventsOverview {...events} /> : null}
      <div class="overview-pair">
        {seesEvents ? (
          <Section title="Failing destinations">
            <Loaded query={events.destinations} lines={2}>
              {({ data }) => <Failing failing={events.failing ?? []} none={data.length === 0} />}
            </Loaded>
          </Section>
        ) : null}
        {seesBalance ? <BalanceCard /> : null}
      </div>
      {seesEvents || seesBalance ? null : (
        <Notice tone="info">
          <p>Your role sees no numbers in this workspace.</p>
        </Notice>
      )}
    </Page>
  )
}
