import { useEffect, useRef, useState } from "preact/hooks"
import {
  type ChartSeries,
  columnAfterKey,
  columnScale,
  highest,
  labelledColumns,
  type StackedPart,
  stackedParts,
  ticksOf,
  valueScale
} from "./chartScales.ts"

interface BarChartProps {
  /** What is counted; names the chart and its table. */
  readonly title: string
  /** Stacked in this order, the first at the bottom. */
  readonly series: ReadonlyArray<ChartSeries>
  /** One label per column, such as days. */
  readonly labels: ReadonlyArray<string>
  readonly format: (value: number) => string
  /** A shorter form for the axis, such as "R$1.2K". Default: `format`. */
  readonly formatTick?: ((value: number) => string) | undefined
}

const height = 168
const below = 24
const above = 8
/** Approximate width of an axis character at the small type size. */
const characterWidth = 7.5

const useWidth = () => {
  const ref = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(640)
  useEffect(() => {
    const element = ref.current
    if (element === null) return
    const observer = new ResizeObserver(([entry]) => {
      if (entry !== undefined && entry.contentRect.width > 0) setWidth(Math.round(entry.contentRect.width))
    })
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  return { ref, width }
}

const sum = (values: ReadonlyArray<number>): number => values.reduce((total, value) => total + value, 0)

/** The line above a chart: the values of the active column, or the sums. */
const Legend = ({ active, format, labels, series }: BarChartProps & { readonly active: number | null }) => (
  <div class="bars-legend" role="status">
    <span class="bars-when">{(active === null ? null : labels[active]) ?? "In all"}</span>
    {series.map(({ label, tone, values }) => (
      <span class="bars-key" key={label}>
        <span class={`bars-swatch bars-${tone}`} aria-hidden="true" />
        {label} <b>{format(active === null ? sum(values) : (values[active] ?? 0))}</b>
      </span>
    ))}
  </div>
)

/** The same data as a table, for screen readers. */
const Values = ({ format, labels, series, title }: BarChartProps) => (
  <table class="for-readers">
    <caption>{title}</caption>
    <thead>
      <tr>
        <th scope="col">When</th>
        {series.map(({ label }) => (
          <th scope="col" key={label}>
            {label}
          </th>
        ))}
      </tr>
    </thead>
    <tbody>
      {labels.map((label, row) => (
        <tr key={label}>
          <th scope="row">{label}</th>
          {series.map((one) => (
            <td key={one.label}>{format(one.values[row] ?? 0)}</td>
          ))}
        </tr>
      ))}
    </tbody>
  </table>
)

interface GridProps {
  readonly y: ReturnType<typeof valueScale>
  readonly width: number
  readonly format: (value: number) => string
}

/** A line for each tick of the value axis, with its label at the left. */
const Grid = ({ format, width, y }: GridProps) => (
  <>
    {ticksOf(y).map((tick) => (
      <g key={tick} transform={`translate(0 ${y(tick)})`}>
        <line class="bars-grid" x2={width} />
        <text class="bars-text" x={-8} dy="0.32em" text-anchor="end">
          {format(tick)}
        </text>
      </g>
    ))}
  </>
)

interface ColumnProps {
  readonly column: number
  readonly parts: ReadonlyArray<StackedPart>
  readonly series: ReadonlyArray<ChartSeries>
  readonly x: ReturnType<typeof columnScale>
  readonly y: ReturnType<typeof valueScale>
  readonly onEnter: () => void
}

/** The segments of a column, below the area in which the pointer selects it. */
const Column = ({ column, onEnter, parts, series, x, y }: ColumnProps) => {
  const at = x(column) ?? 0
  return (
    <>
      {parts.map(({ from, series: index, to }) => (
        <rect
          key={index}
          class={`bars-${series[index]?.tone ?? "neutral"}`}
          x={at}
          y={y(to)}
          width={x.bandwidth()}
          height={Math.max(1, y(from) - y(to))}
          rx={Math.min(2, x.bandwidth() / 4)}
        />
      ))}
      <rect
        class="bars-target"
        x={at - (x.step() - x.bandwidth()) / 2}
        y={0}
        width={x.step()}
        height={height}
        onPointerEnter={onEnter}
      />
    </>
  )
}

interface BarsProps extends BarChartProps {
  readonly active: number | null
  readonly onActive: (column: number | null) => void
  readonly width: number
}

const widthOf = (text: string): number => text.length * characterWidth

const Bars = ({ active, format, formatTick = format, labels, onActive, series, width }: BarsProps) => {
  const columns = stackedParts(series, labels.length)
  const y = valueScale(highest(columns), height)
  const left = Math.max(...ticksOf(y).map((tick) => widthOf(formatTick(tick)))) + 12
  const right = width - left
  const x = columnScale(labels.length, right)
  const labelled = labelledColumns(labels.length, right, Math.max(...labels.map(widthOf), 4 * characterWidth) + 16)
  return (
    <svg
      width={width}
      height={above + height + below}
      viewBox={`0 0 ${width} ${above + height + below}`}
      aria-hidden="true"
      onPointerLeave={() => onActive(null)}
    >
      <g transform={`translate(${left} ${above})`}>
        <Grid y={y} width={right} format={formatTick} />
        {labels.map((label, column) => (
          <g key={label} class={active === null || active === column ? "" : "bars-faint"}>
            <Column
              column={column}
              parts={columns[column] ?? []}
              series={series}
              x={x}
              y={y}
              onEnter={() => onActive(column)}
            />
            {labelled.has(column) ? (
              <text
                class="bars-text"
                x={Math.min((x(column) ?? 0) + x.bandwidth() / 2, right - widthOf(label) / 2)}
                y={height + 16}
                text-anchor="middle"
              >
                {label}
              </text>
            ) : null}
          </g>
        ))}
      </g>
    </svg>
  )
}

/**
 * A stacked bar chart. The line above it names the series and shows the values of the column under the pointer or
 * selected with the arrow keys, otherwise the sums. A table gives screen readers the same data.
 */
export const BarChart = (chart: BarChartProps) => {
  const { ref, width } = useWidth()
  const [active, setActive] = useState<number | null>(null)
  const move = (event: KeyboardEvent) => {
    const next = columnAfterKey(event.key, active, chart.labels.length)
    if (next === null) return
    event.preventDefault()
    setActive(next)
  }
  return (
    <div class="bars" ref={ref}>
      <Legend {...chart} active={active} />
      {/* biome-ignore lint/a11y/useSemanticElements: a picture that the arrow keys go through, and no fields */}
      <div
        class="bars-picture"
        role="group"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the arrow keys show each column's values, as the pointer does
        tabIndex={0}
        aria-label={`${chart.title}: arrow keys show each value`}
        onKeyDown={move}
        onBlur={() => setActive(null)}
      >
        <Bars {...chart} active={active} onActive={setActive} width={width} />
      </div>
      <Values {...chart} />
    </div>
  )
}
