import { scaleLinear } from "d3-scale"
import { area, curveMonotoneX, line } from "d3-shape"
import { Badge, OnOffBadge } from "../../components/Badge.tsx"
import { ButtonLink } from "../../components/Button.tsx"
import { Empty, Loaded } from "../../components/Loaded.tsx"
import { Page } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { useWorkspace } from "../../state/Session.ts"
import { endpointDays, type Statistics } from "../overview/figures.ts"
import { countedUpTo } from "../overview/format.ts"
import { shownDays, useDestinations, useRetrying, useStatistics } from "./useDestinations.ts"

const width = 96
const height = 28
const inset = 3

/** A small line without axes, as high as a row of text; flat at the bottom without values. */
const Sparkline = ({
  label,
  values
}: {
  /** Oldest first, none negative. */
  readonly values: ReadonlyArray<number>
  /** Describes the values and the last one, for screen readers. */
  readonly label: string
}) => {
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

const Recent = ({ id, statistics }: { readonly id: string; readonly statistics: Statistics | undefined }) => {
  if (statistics === undefined) return <span class="quiet">…</span>
  const { failed, totals } = endpointDays(statistics, id)
  const sum = totals.reduce((all, count) => all + count, 0)
  return <Sparkline values={totals} label={`${sum} deliveries in ${shownDays} days, ${failed} of them failed`} />
}

const failuresCell = (recentFailures: number, retrying: number) =>
  recentFailures + retrying === 0 ? (
    <span class="quiet">None</span>
  ) : (
    <span class="row">
      {recentFailures === 0 ? null : <Badge tone="problem">{countedUpTo(recentFailures)} failed</Badge>}
      {retrying === 0 ? null : <Badge tone="warning">{retrying} waiting to retry</Badge>}
    </span>
  )

export default function Destinations() {
  const { can, path } = useWorkspace()
  const query = useDestinations(15_000)
  const statistics = useStatistics(60_000).data
  const retrying = useRetrying()
  const some = (query.data?.data.length ?? 0) > 0
  const create = (words: string) =>
    can("webhook-endpoints:write") ? (
      <ButtonLink href={path("/destinations/new")} kind="primary">
        {words}
      </ButtonLink>
    ) : null
  return (
    <Page
      title="Destinations"
      lead="Your URLs that get events, each with its own types and filters."
      actions={some ? create("New destination") : null}
    >
      <Loaded query={query}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="No destinations yet" action={create("Create a destination")}>
              A destination is a URL of yours that gets the events of your payments, signed. Your order is paid when the
              event says so.
            </Empty>
          ) : (
            <Table
              caption="Destinations"
              items={data}
              href={({ id }) => path(`/destinations/${id}`)}
              columns={[
                {
                  head: "Destination",
                  cell: ({ name, url }) => (
                    <span class="destination-name">
                      <span>{name}</span> <span class="destination-url">{url}</span>
                    </span>
                  )
                },
                {
                  head: "State",
                  cell: ({ active }) => <OnOffBadge isOn={active} words={["Active", "Paused"]} off="warning" />
                },
                {
                  head: "Event types",
                  cell: ({ events }) => (events.length === 1 ? events[0] : `${events.length} types`)
                },
                {
                  head: "Failures in 24 hours",
                  cell: ({ id, recentFailures }) => failuresCell(recentFailures, retrying?.get(id) ?? 0)
                },
                { head: `Last ${shownDays} days`, cell: ({ id }) => <Recent id={id} statistics={statistics} /> }
              ]}
            />
          )
        }
      </Loaded>
    </Page>
  )
}
