import { useEffect, useId, useRef, useState } from "preact/hooks"
import {
  type ChartSeries,
  columnAfterKey,
  columnScale,
  highest,
  labelledColumns,
  stackedParts,
  ticksOf,
  valueScale
} from "./chartScales.ts"

export interface BarChartProps {
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

interface BarsProps extends BarChartProps {
  readonly active: number | null
  readonly onActive: (column: number | null) => void
  readonly width: number
}

const Bars = ({ active, format, formatTick = format, labels, onActive, series, width }: BarsProps) => {
  const id = useId()
  const columns = stackedParts(series, labels.length)
  const y = valueScale(highest(columns), height)
  const ticks = ticksOf(y)
  const left = Math.max(...ticks.map((tick) => formatTick(tick).length)) * characterWidth + 12
  const x = columnScale(labels.length, width - left)
  const labelWidth = Math.max(...labels.map((label) => label.length), 4) * characterWidth + 16
  const labelled = labelledColumns(labels.length, width - left, labelWidth)
  return (
    <svg
      width={width}
      height={above + height + below}
      viewBox={`0 0 ${width} ${above + height + below}`}
      aria-hidden="true"
      onPointerLeave={() => onActive(null)}
    >
      <g transform={`translate(${left} ${above})`}>
        {ticks.map((tick) => (
          <g key={tick} transform={`translate(0 ${y(tick)})`}>
            <line class="bars-grid" x2={width - left} />
            <text class="bars-text" x={-8} dy="0.32em" text-anchor="end">
              {formatTick(tick)}
            </text>
          </g>
        ))}
        {columns.map((parts, column) => {
          const at = x(column) ?? 0
          const label = labels[column] ?? ""
          return (
            // Columns have no identity besides their position
            <g key={`${id}-${column}`} class={active === null || active === column ? "" : "bars-faint"}>
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
              {labelled.has(column) ? (
                <text
                  class="bars-text"
                  x={Math.min(at + x.bandwidth() / 2, width - left - (label.length * characterWidth) / 2)}
                  y={height + 16}
                  text-anchor="middle"
                >
                  {label}
                </text>
              ) : null}
              <rect
                class="bars-target"
                x={at - (x.step() - x.bandwidth()) / 2}
                y={0}
                width={x.step()}
                height={height}
                onPointerEnter={() => onActive(column)}
              />
            </g>
          )
        })}
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
