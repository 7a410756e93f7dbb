import { scaleLinear } from "d3-scale"
import { area, curveMonotoneX, line } from "d3-shape"

export interface SparklineProps {
  /** Oldest first, none negative. */
  readonly values: ReadonlyArray<number>
  /** Describes the values and the last one, for screen readers. */
  readonly label: string
}

const width = 96
const height = 28
const inset = 3

/** A small line without axes, as high as a row of text; flat at the bottom without values. */
export const Sparkline = ({ label, values }: SparklineProps) => {
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
