import { boundaryAt } from "../../kit/Ids.ts"
import type { Timed } from "./MoveTables.ts"

/** Which hours of a table's history have been compared, and which rows that leaves. Times are Unix milliseconds. */

export const hourMillis = 3_600_000
export const dayMillis = 24 * hourMillis

/** A time from which, and one until which; either may be infinite. */
export interface Span {
  readonly from: number
  readonly until: number
}

/** What was compared of a table. */
export interface Hours {
  /** From and until the beginning of an hour. */
  readonly span: Span
  /** How many rows the hours have; an hour without any is not there. */
  readonly rows: Map<number, number>
  /** The hours that are still to be compared, or again. */
  readonly open: Set<number>
}

/** A table of which nothing can be compared hour by hour. */
export const noHours = (): Hours => ({ span: { from: 0, until: 0 }, rows: new Map(), open: new Set() })

/** The hours that are to be compared again, as few spans. */
export const openSpans = ({ open }: Hours): ReadonlyArray<Span> => {
  const spans: Array<Span> = []
  for (const hour of [...open].toSorted((a, b) => a - b)) {
    const last = spans.at(-1)
    if (last !== undefined && last.until === hour) spans.splice(-1, 1, { from: last.from, until: hour + hourMillis })
    else spans.push({ from: hour, until: hour + hourMillis })
  }
  return spans
}

/** All that was not compared, or is to be again: every other row is in an hour that was. */
export const restOf = (hours: Hours): ReadonlyArray<Span> => [
  { from: Number.NEGATIVE_INFINITY, until: hours.span.from },
  ...openSpans(hours),
  { from: hours.span.until, until: Number.POSITIVE_INFINITY }
]

/** Cuts spans at the beginnings of days. */
export const byDay = (spans: ReadonlyArray<Span>): ReadonlyArray<Span> =>
  spans.flatMap(({ from, until }) => {
    const days: Array<Span> = []
    for (let begin = from; begin < until; ) {
      const end = Math.min(until, begin - (begin % dayMillis) + dayMillis)
      days.push({ from: begin, until: end })
      begin = end
    }
    return days
  })

/** Groups spans by statement: one each along an index, or one for all if every statement reads all rows. */
export const byStatement = ({ after }: Timed, spans: ReadonlyArray<Span>): ReadonlyArray<ReadonlyArray<Span>> =>
  after === null ? (spans.length === 0 ? [] : [spans]) : spans.map((span) => [span])

const boundary = ({ type }: Timed, millis: number): string =>
  type === "timestamptz"
    ? `'${new Date(millis).toISOString()}'::timestamptz`
    : `'${boundaryAt(millis)}'${type === "uuid" ? "::uuid" : ""}`

/** The condition that a row is in one of these spans. In a form that an index is used for. */
export const isIn = (timed: Timed, spans: ReadonlyArray<Span>): string => {
  const column = `t.${timed.column}`
  const conditions = spans.map(({ from, until }) =>
    [
      ...(Number.isFinite(from) ? [`${column} >= ${boundary(timed, from)}`] : []),
      ...(Number.isFinite(until) ? [`${column} < ${boundary(timed, until)}`] : [])
    ].join(" AND ")
  )
  const inSpans = conditions.map((condition) => `(${condition})`).join(" OR ")
  return timed.after === "environment" ? `t.environment IN ('sandbox', 'production') AND (${inSpans})` : inSpans
}

/** The hour of a row, in SQL, as a Unix time in milliseconds: `-Infinity` if its time is not known. */
export const hourOf = ({ column, type }: Timed): string =>
  `(extract(epoch FROM payments.hour_of(t.${column}${type === "timestamptz" ? "" : "::text"})) * 1000)::float8 AS hour`
