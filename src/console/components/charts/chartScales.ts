import { type ScaleBand, type ScaleLinear, scaleBand, scaleLinear } from "d3-scale"

/** The pure part of the charts: scales, stacks and which labels fit. All lengths are in CSS pixels. */

export type Tone = "neutral" | "ok" | "warning" | "problem" | "info"

export interface ChartSeries {
  readonly label: string
  readonly tone: Tone | "accent"
  readonly values: ReadonlyArray<number>
}

/** One series' segment of a bar: `from` to `to` on the value axis. */
export interface StackedPart {
  readonly series: number
  readonly from: number
  readonly to: number
}

/** The value to draw: negative and missing values count as 0. */
const drawn = (value: number | undefined): number =>
  value !== undefined && Number.isFinite(value) && value > 0 ? value : 0

/** The segments of each column, the first series at the bottom; omits segments without height. */
export const stackedParts = (
  series: ReadonlyArray<ChartSeries>,
  columns: number
): ReadonlyArray<ReadonlyArray<StackedPart>> =>
  Array.from({ length: columns }, (_, column) => {
    const parts: Array<StackedPart> = []
    let from = 0
    for (const [index, { values }] of series.entries()) {
      const value = drawn(values[column])
      if (value === 0) continue
      parts.push({ series: index, from, to: from + value })
      from += value
    }
    return parts
  })

export const highest = (columns: ReadonlyArray<ReadonlyArray<StackedPart>>): number =>
  Math.max(0, ...columns.map((parts) => parts.at(-1)?.to ?? 0))

/** A scale from 0 to a round number of at least `top`; without values the axis still spans 0 to 1. */
export const valueScale = (top: number, height: number): ScaleLinear<number, number> =>
  scaleLinear()
    .domain([0, Math.max(1, top)])
    .nice(4)
    .range([height, 0])

/** The axis's ticks, whole numbers only, like the counts and amounts they measure. */
export const ticksOf = (scale: ScaleLinear<number, number>): ReadonlyArray<number> =>
  scale.ticks(4).filter(Number.isInteger)

export const columnScale = (columns: number, width: number): ScaleBand<number> =>
  scaleBand<number>()
    .domain(Array.from({ length: columns }, (_, column) => column))
    .range([0, Math.max(1, width)])
    .paddingInner(0.25)
    .paddingOuter(0.1)

/** The columns to label: the last one and, evenly spaced before it, as many as have `labelWidth` of room each. */
export const labelledColumns = (columns: number, width: number, labelWidth: number): ReadonlySet<number> => {
  const fit = Math.max(1, Math.floor(width / labelWidth))
  const step = Math.max(1, Math.ceil(columns / fit))
  const labelled = new Set<number>()
  for (let column = columns - 1; column >= 0; column -= step) labelled.add(column)
  return labelled
}

/** The column to show after a key press, or null if the key does not move the selection. */
export const columnAfterKey = (key: string, current: number | null, columns: number): number | null => {
  const last = columns - 1
  const at = current ?? last
  switch (key) {
    case "ArrowLeft":
      return Math.max(0, current === null ? last : at - 1)
    case "ArrowRight":
      return Math.min(last, current === null ? 0 : at + 1)
    case "Home":
      return 0
    case "End":
      return last
    default:
      return null
  }
}
