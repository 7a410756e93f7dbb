import { scaleBand, scaleLinear } from "d3-scale"
import { useState } from "preact/hooks"
import type { Tone } from "./Badge.tsx"

/** Pictures of numbers, drawn as SVG, each with the same numbers as a table for who does not see it. */

export interface Series {
  readonly label: string
  readonly tone: Tone
  readonly values: ReadonlyArray<number>
}

const width = 720
const height = 200
const edge = { left: 0, right: 0, top: 8, bottom: 22 }

const sumAt = (series: ReadonlyArray<Series>, at: number): number =>
  series.reduce((sum, { values }) => sum + (values[at] ?? 0), 0)

/** Bars by label, one part on top of another per series. */
export const BarChart = (props: {
  readonly title: string
  readonly series: ReadonlyArray<Series>
  /** What each bar stands for, such as days. */
  readonly labels: ReadonlyArray<string>
  readonly format: (value: number) => string
}) => {
  const { format, labels, series, title } = props
  const [pointed, setPointed] = useState<number | undefined>(undefined)
  const sums = labels.map((_, at) => sumAt(series, at))
  const top = Math.max(...sums, 0)
  const x = scaleBand<number>()
    .domain(labels.map((_, at) => at))
    .range([edge.left, width - edge.right])
    .padding(0.25)
  const y = scaleLinear()
    .domain([0, top === 0 ? 1 : top])
    .nice(3)
    .range([height - edge.bottom, edge.top])
  const ticks = top === 0 ? [0] : y.ticks(3)
  const shownLabels = [0, Math.floor((labels.length - 1) / 2), labels.length - 1].filter(
    (at, index, all) => at >= 0 && all.indexOf(at) === index
  )
  return (
    <figure class="chart">
      <figcaption class="chart-caption">
        <span class="chart-title">{title}</span>
        <ul class="chart-legend">
          {series.map(({ label, tone }) => (
            <li key={label}>
              <svg class={`chart-key chart-${tone}`} width="10" height="10" aria-hidden="true">
                <rect width="10" height="10" rx="2" />
              </svg>
              {label}
            </li>
          ))}
        </ul>
      </figcaption>
      <svg
        class="chart-picture"
        viewBox={`0 0 ${width} ${height}`}
        aria-hidden="true"
        onPointerLeave={() => setPointed(undefined)}
      >
        {ticks.map((tick) => (
          <g key={tick} class="chart-tick">
            <line x1={edge.left} x2={width - edge.right} y1={y(tick)} y2={y(tick)} />
            {tick === 0 ? null : (
              <text x={edge.left} y={y(tick) - 4}>
                {format(tick)}
              </text>
            )}
          </g>
        ))}
        {labels.map((label, at) => {
          let below = 0
          return (
            <g key={label} onPointerEnter={() => setPointed(at)}>
              <rect
                class={pointed === at ? "chart-column chart-column-pointed" : "chart-column"}
                x={(x(at) ?? 0) - (x.step() - x.bandwidth()) / 2}
                y={edge.top}
                width={x.step()}
                height={height - edge.top - edge.bottom}
              />
              {series.map(({ label: name, tone, values }) => {
                const value = values[at] ?? 0
                const from = below
                below += value
                return value <= 0 ? null : (
                  <rect
                    key={name}
                    class={`chart-${tone}`}
                    x={x(at) ?? 0}
                    y={y(below)}
                    width={x.bandwidth()}
                    height={Math.max(1, y(from) - y(below))}
                    rx="1.5"
                  />
                )
              })}
            </g>
          )
        })}
        {shownLabels.map((at) => (
          <text
            key={at}
            class="chart-label"
            x={at === 0 ? edge.left : at === labels.length - 1 ? width - edge.right : (x(at) ?? 0) + x.bandwidth() / 2}
            y={height - 4}
            text-anchor={at === 0 ? "start" : at === labels.length - 1 ? "end" : "middle"}
          >
            {labels[at]}
          </text>
        ))}
      </svg>
      <p class="chart-pointed" aria-hidden="true">
        {pointed === undefined
          ? "\u00a0"
          : `${labels[pointed] ?? ""}: ${series.map(({ label, values }) => `${label} ${format(values[pointed] ?? 0)}`).join(", ")}`}
      </p>
      <table class="for-readers">
        <caption>{title}</caption>
        <thead>
          <tr>
            <th scope="col">Day</th>
            {series.map(({ label }) => (
              <th key={label} scope="col">
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {labels.map((label, at) => (
            <tr key={label}>
              <th scope="row">{label}</th>
              {series.map(({ label: name, values }) => (
                <td key={name}>{format(values[at] ?? 0)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </figure>
  )
}

/** A line the size of a word. The label says what it shows, with the numbers that matter. */
export const Sparkline = ({ label, values }: { readonly values: ReadonlyArray<number>; readonly label: string }) => {
  const x = scaleLinear()
    .domain([0, Math.max(1, values.length - 1)])
    .range([1, 95])
  const y = scaleLinear()
    .domain([0, Math.max(1, ...values)])
    .range([22, 2])
  const line = values.map((value, at) => `${at === 0 ? "M" : "L"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("")
  return (
    <svg class="sparkline" viewBox="0 0 96 24" width="96" height="24" role="img" aria-label={label}>
      <title>{label}</title>
      <path d={line} fill="none" />
    </svg>
  )
}
