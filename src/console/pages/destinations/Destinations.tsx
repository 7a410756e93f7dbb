import { scaleLinear } from "d3-scale"
import { area, curveMonotoneX, line } from "d3-shape"
import { call } from "../../api/Call.ts"
import { Badge } from "../../components/Badge.tsx"
import { ButtonLink } from "../../components/Button.tsx"
import { Empty, Loaded } from "../../components/Loaded.tsx"
import { Page } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { useQuery } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { endpointDays, type Statistics } from "../overview/figures.ts"
import { countedUpTo } from "../overview/format.ts"
import { type DestinationList, useDestinations, useRetrying } from "./useDestinations.ts"

interface SparklineProps {
  /** Oldest first, none negative. */
  readonly values: ReadonlyArray<number>
  /** Describes the values and the last one, for screen readers. */
  readonly label: string
}

const width = 96
const height = 28
const inset = 3

/** A small line without axes, as high as a row of text; flat at the bottom without values. */
const Sparkline = ({ label, values }: SparklineProps) => {
  const shown = values.length > 1 ? values : [values[0] ?? 0, values[0] ?? 0]
  const x = scaleLinear()
    .domain([0, shown.length - 1])
    .range([inset, width - inset])
  const y = scaleLinear()
    .domain([0, Math.max(1, ...shown)])
    .range([height - inset, inset])
  const at = (_: number, index: number) => x(index)
  const stroke = line<number>().x(at).y(y).curve(curveMonotoneX)(shown)
  const fill = area<number>()
    .x(at)
    .y0(height - inset)
    .y1(y)
    .curve(curveMonotoneX)(shown)
  const last = shown.at(-1) ?? 0
  return (
    <svg class="spark" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      <path class="spark-area" d={fill ?? ""} />
      <path class="spark-line" d={stroke ?? ""} />
      <circle class="spark-end" cx={x(shown.length - 1)} cy={y(last)} r={2} />
    </svg>
  )
}

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
