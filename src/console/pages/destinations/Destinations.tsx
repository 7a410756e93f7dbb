import { call } from "../../api/Call.ts"
import { Badge } from "../../components/Badge.tsx"
import { ButtonLink } from "../../components/Button.tsx"
import { Empty, Loaded } from "../../components/Loaded.tsx"
import { Page } from "../../components/Page.tsx"
import { Sparkline } from "../../components/Sparkline.tsx"
import { Table } from "../../components/Table.tsx"
import { useQuery } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { endpointDays, type Statistics } from "../overview/figures.ts"
import { countedUpTo } from "../overview/format.ts"
import { type DestinationList, useDestinations } from "./useDestinations.ts"
import { useRetrying } from "./useRetrying.ts"

const sparkDays = 30

/** A sparkline of a destination's recent deliveries; a placeholder while loading. */
const Recent = ({ id, statistics }: { readonly id: string; readonly statistics: Statistics | undefined }) => {
  if (statistics === undefined) return <span class="quiet">…</span>
  const { failed, totals } = endpointDays(statistics, id)
  const sum = totals.reduce((all, count) => all + count, 0)
  return <Sparkline values={totals} label={`${sum} deliveries in ${sparkDays} days, ${failed} of them failed`} />
}

/** The counts of final failures and of deliveries waiting for a retry. */
const failuresCell = (recentFailures: number, retrying: number) =>
  recentFailures + retrying === 0 ? (
    <span class="quiet">None</span>
  ) : (
    <span class="row">
      {recentFailures === 0 ? null : <Badge tone="problem">{countedUpTo(recentFailures)} failed</Badge>}
      {retrying === 0 ? null : <Badge tone="warning">{retrying} waiting to retry</Badge>}
    </span>
  )

const Listed = ({
  list,
  retrying,
  statistics
}: {
  readonly list: DestinationList
  readonly retrying: ReadonlyMap<string, number> | undefined
  readonly statistics: Statistics | undefined
}) => {
  const { can, path } = useWorkspace()
  if (list.data.length === 0) {
    return (
      <Empty
        title="No destinations yet"
        action={
          can("webhook-endpoints:write") ? (
            <ButtonLink href={path("/destinations/new")} kind="primary">
              Create a destination
            </ButtonLink>
          ) : null
        }
      >
        A destination is a URL of yours that gets the events of your payments, signed. Your order is paid when the event
        says so.
      </Empty>
    )
  }
  return (
    <Table
      caption="Destinations"
      head={["Destination", "State", "Event types", "Failures in 24 hours", `Last ${sparkDays} days`]}
      rows={list.data.map(({ active, events, id, name, recentFailures, url }) => ({
        key: id,
        href: path(`/destinations/${id}`),
        cells: [
          <span class="destination-name" key="name">
            <span>{name}</span> <span class="destination-url">{url}</span>
          </span>,
          active ? <Badge tone="ok">Active</Badge> : <Badge tone="warning">Paused</Badge>,
          events.length === 1 ? events[0] : `${events.length} types`,
          <span key="failures">{failuresCell(recentFailures, retrying?.get(id) ?? 0)}</span>,
          <Recent id={id} statistics={statistics} key="recent" />
        ]
      }))}
    />
  )
}

/** All destinations, with their recent failures. */
export default function Destinations() {
  const { can, environment, path } = useWorkspace()
  const query = useDestinations(15_000)
  const statistics = useQuery(
    `${environment}/statistics/${sparkDays}`,
    (signal) => call("statistics", "get", { urlParams: { days: sparkDays } }, { signal }),
    { pollMillis: 60_000 }
  )
  const retrying = useRetrying()
  const some = (query.data?.data.length ?? 0) > 0
  return (
    <Page
      title="Destinations"
      lead="Your URLs that get events, each with the types and filters of its own."
      actions={
        some && can("webhook-endpoints:write") ? (
          <ButtonLink href={path("/destinations/new")} kind="primary">
            New destination
          </ButtonLink>
        ) : null
      }
    >
      <Loaded query={query}>{(list) => <Listed list={list} retrying={retrying} statistics={statistics.data} />}</Loaded>
    </Page>
  )
}
