import { useEffect, useState } from "preact/hooks"

/** Times in the reader's zone, with UTC on hover and for screen readers. */

const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" })
const toTheMinute = { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" } as const
const localShort = new Intl.DateTimeFormat(undefined, toTheMinute)
const localLong = new Intl.DateTimeFormat(undefined, { ...toTheMinute, year: "numeric" })
const localExact = new Intl.DateTimeFormat(undefined, { ...toTheMinute, second: "2-digit" })

const withSeconds = (at: Date, now: Date): string =>
  (at.getFullYear() === now.getFullYear() ? localExact : local).format(at)

const relativeFormat = new Intl.RelativeTimeFormat("en", { numeric: "auto" })

const steps: ReadonlyArray<readonly [unit: Intl.RelativeTimeFormatUnit, seconds: number]> = [
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1]
]

/** A time relative to another one, such as `2 minutes ago`. */
const relativeTime = (at: Date, now: Date): string => {
  const seconds = Math.round((at.getTime() - now.getTime()) / 1000)
  const [unit, size] = steps.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1]
  return relativeFormat.format(Math.trunc(seconds / size), unit)
}

/** The time in UTC, such as `2026-01-31 09:30:00 UTC`. */
export const inUtc = (at: Date): string => `${at.toISOString().slice(0, 19).replace("T", " ")} UTC`

const useNow = (moving: boolean): Date => {
  const [now, setNow] = useState(() => new Date())
  useEffect(() => {
    if (!moving) return
    const timer = setInterval(() => setNow(new Date()), 15_000)
    return () => clearInterval(timer)
  }, [moving])
  return now
}

export const Time = (props: {
  /** ISO 8601 text or Unix seconds. */
  readonly at: string | number | null | undefined
  /** Shows `2 minutes ago` instead of the time. */
  readonly relative?: boolean
  readonly exact?: boolean
}) => {
  const now = useNow(props.relative === true)
  if (props.at === null || props.at === undefined) return <span class="quiet">–</span>
  const at = new Date(typeof props.at === "number" ? props.at * 1000 : props.at)
  if (Number.isNaN(at.getTime())) return <span class="quiet">–</span>
  const short = at.getFullYear() === now.getFullYear() ? localShort : localLong
  const text =
    props.relative === true ? relativeTime(at, now) : props.exact === true ? withSeconds(at, now) : short.format(at)
  const title = props.relative === true ? `${local.format(at)} · ${inUtc(at)}` : inUtc(at)
  return (
    <time dateTime={at.toISOString()} title={title}>
      {text}
      <span class="for-readers"> ({inUtc(at)})</span>
    </time>
  )
}
