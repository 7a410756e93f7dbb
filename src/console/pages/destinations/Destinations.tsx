import { scaleLinear } from "d3-scale"
import { area, curveMonotoneX, line } from "d3-shape"
import { Badge, OnOffBadge } from "../../components/Badge.tsx"
import { ButtonLink } from "../../components/Button.tsx"
import { Filters } from "../../components/Filters.tsx"
import { TextField } from "../../components/forms/Field.tsx"
import { Empty, Loaded } from "../../components/Loaded.tsx"
import { Page } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { useWorkspace } from "../../state/Session.ts"
import { useUrlFilters } from "../../state/UrlState.ts"
import { byTrouble, endpointDays, type Statistics } from "../overview/figures.ts"
import { count, countedUpTo } from "../overview/format.ts"
import {
  type Destination,
  type DestinationList,
  shownDays,
  useDestinations,
  useRetrying,
  useStatistics
} from "./useDestinations.ts"

const width = 96
const height = 28
const inset = 3

/** Health by day, without axes and as high as a row of text: all deliveries, and before them those that don't arrive. */
const Sparkline = (props: {
  /** Oldest first, none negative. */
  readonly totals: ReadonlyArray<number>
  readonly troubled: ReadonlyArray<number>
  /** Says the same, for screen readers. */
  readonly label: string
}) => {
  const x = scaleLinear()
    .domain([0, Math.max(1, props.totals.length - 1)])
    .range([inset, width - inset])
  const y = scaleLinear()
    .domain([0, Math.max(1, ...props.totals)])
    .range([height - inset, inset])
  const below = area<number>()
    .x((_, day) => x(day))
    .y0(height - inset)
    .y1(y)
    .curve(curveMonotoneX)
  const stroke = line<number>()
    .x((_, day) => x(day))
    .y(y)
    .curve(curveMonotoneX)
  return (
    <svg
      class="spark"
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={props.label}
    >
      <path class="spark-area" d={below([...props.totals]) ?? ""} />
      <path class="spark-line" d={stroke([...props.totals]) ?? ""} />
      {props.troubled.some((count) => count > 0) ? (
        <path class="spark-trouble" d={below([...props.troubled]) ?? ""} />
      ) : null}
    </svg>
  )
}

/** A destination's recent health; a placeholder while loading. */
const Recent = ({ id, statistics }: { readonly id: string; readonly statistics: Statistics | undefined }) => {
  if (statistics === undefined) return <span class="quiet">…</span>
  const { failed, totals, troubled, waiting } = endpointDays(statistics, id)
  const sum = totals.reduce((all, count) => all + count, 0)
  const label = `${sum} deliveries in ${shownDays} days, ${failed} of them failed, ${waiting} waiting`
  return <Sparkline totals={totals} troubled={troubled} label={label} />
}

const Trouble = ({ recentFailures, waiting }: { readonly recentFailures: number; readonly waiting: number }) =>
  recentFailures + waiting === 0 ? (
    <span class="quiet">None</span>
  ) : (
    <span class="row">
      {recentFailures === 0 ? null : <Badge tone="problem">{countedUpTo(recentFailures)} failed</Badge>}
      {waiting === 0 ? null : <Badge tone="warning">{count(waiting)} waiting</Badge>}
    </span>
  )

const NameCell = ({ name, url, warnings }: Destination) => (
  <span class="destination-name">
    <span>{name}</span> <span class="destination-url">{url}</span>
    {warnings.length === 0 ? null : (
      <span>
        <Badge tone="warning">Some types never arrive</Badge>
      </span>
    )}
  </span>
)

/** Below this number, all destinations are in view at once. */
const fewDestinations = 8

interface DestinationTableProps {
  readonly data: DestinationList["data"]
  readonly statistics: Statistics | undefined
  readonly retrying: ReturnType<typeof useRetrying>
}

const DestinationTable = ({ data, retrying, statistics }: DestinationTableProps) => {
  const { path } = useWorkspace()
  const { field, filters, onClear } = useUrlFilters("search")
  const words = filters.search.trim().toLowerCase()
  return (
    <>
      {data.length > fewDestinations || onClear !== undefined ? (
        <Filters onClear={onClear}>
          <TextField {...field("search")} label="Name or URL" type="search" maxLength={255} />
        </Filters>
      ) : null}
      <Table
        caption="Destinations, failing first"
        items={byTrouble(data, statistics, retrying).filter(({ name, url }) =>
          `${name} ${url}`.toLowerCase().includes(words)
        )}
        href={({ id }) => path(`/destinations/${id}`)}
        columns={[
          { head: "Destination", cell: NameCell },
          {
            head: "State",
            cell: ({ active }) => <OnOffBadge isOn={active} words={["Active", "Paused"]} off="warning" />
          },
          {
            head: "Event types",
            cell: ({ events }) => (events.length === 1 ? events[0] : `${events.length} types`)
          },
          { head: "Failures in 24 hours", cell: Trouble },
          { head: `Last ${shownDays} days`, cell: ({ id }) => <Recent id={id} statistics={statistics} /> }
        ]}
      />
    </>
  )
}

export default function Destinations() {
  const { can, path } = useWorkspace()
  const query = useDestinations(15_000)
  const statistics = useStatistics(60_000).data
  const retrying = useRetrying()
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
      actions={(query.data?.data.length ?? 0) > 0 ? create("New destination") : null}
    >
      <Loaded query={query}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="No destinations yet" action={create("Create a destination")}>
              A destination is a URL of yours that gets the events of your payments, signed. Your order is paid when the
              event says so.
            </Empty>
          ) : (
            <DestinationTable data={data} statistics={statistics} retrying={retrying} />
          )
        }
      </Loaded>
    </Page>
  )
}
