import { type ScaleBand, type ScaleLinear, scaleBand, scaleLinear } from "d3-scale"

/** The pure part of the charts: sizes, stacks and which labels fit. All lengths are in CSS pixels. */

/** Colours of a series: custom properties of the tokens. */
export type ChartTone = "accent" | "ok" | "warning" | "problem" | "info" | "neutral"

/** One series of a stacked bar chart: a value per label, in the labels' order. */
export interface ChartSeries {
  readonly label: string
  readonly tone: ChartTone
  readonly values: ReadonlyArray<number>
}

/** A bar's part: from `from` to `to` on the value axis. */
export interface StackedPart {
  readonly series: number
  readonly from: number
  readonly to: number
}

/** A value as a chart draws it: no chart of ours has negative ones, and one that is missing is none. */
const drawn = (value: number | undefined): number =>
  value !== undefined && Number.isFinite(value) && value > 0 ? value : 0

/** The parts of each column, the first series at the bottom; parts without height are left out. */
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

/** The greatest sum of a column. */
export const highest = (columns: ReadonlyArray<ReadonlyArray<StackedPart>>): number =>
  Math.max(0, ...columns.map((parts) => parts.at(-1)?.to ?? 0))

/** A scale from 0 to a round number that is not below `top`; a chart without values still has an axis. */
export const valueScale = (top: number, height: number): ScaleLinear<number, number> =>
  scaleLinear()
    .domain([0, Math.max(1, top)])
    .nice(4)
    .range([height, 0])

/** The axis's ticks: whole numbers, since counts and amounts in the smallest unit are. */
export const ticksOf = (scale: ScaleLinear<number, number>): ReadonlyArray<number> =>
  scale.ticks(4).filter(Number.isInteger)

export const columnScale = (columns: number, width: number): ScaleBand<number> =>
  scaleBand<number>()
    .domain(Array.from({ length: columns }, (_, column) => column))
    .range([0, Math.max(1, width)])
    .paddingInner(0.25)
    .paddingOuter(0.1)

/**
 * Which columns get a label below them: the last, and from there back as many as have `labelWidth` of room each, evenly
 * spaced.
 */
export const labelledColumns = (columns: number, width: number, labelWidth: number): ReadonlySet<number> => {
  const fit = Math.max(1, Math.floor(width / labelWidth))
  const step = Math.max(1, Math.ceil(columns / fit))
  const labelled = new Set<number>()
  for (let column = columns - 1; column >= 0; column -= step) labelled.add(column)
  return labelled
}

/** The column that is shown after a key, or null if the key does not move. */
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
