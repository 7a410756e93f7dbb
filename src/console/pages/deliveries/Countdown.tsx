import { useEffect, useState } from "preact/hooks"
import { inUtc } from "../../components/Time.tsx"
import { durationText } from "./durations.ts"

const everySecond = 1000

/** Counts down to a time, every second while the tab is visible: "in 29 s". A past time is shown as due. */
export const Countdown = ({ to }: { readonly to: string }) => {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) setNow(Date.now())
    }, everySecond)
    return () => clearInterval(timer)
  }, [])
  const at = new Date(to)
  const left = at.getTime() - now
  return (
    <time dateTime={to} title={inUtc(at)}>
      {left > 0 ? `in ${durationText(Math.ceil(left / 1000) * 1000)}` : "any moment"}
    </time>
  )
}
