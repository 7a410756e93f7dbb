import { Time } from "../../components/Time.tsx"
import { meaningOf } from "./attemptErrors.ts"
import { Countdown } from "./Countdown.tsx"
import { durationText } from "./durations.ts"
import { type DeliveryDetail, type TimelineStep, timelineOf } from "./timeline.ts"

type AttemptStep = Extract<TimelineStep, { kind: "attempt" }>

const outcomeWords = {
  delivered: "Delivered",
  failed: "Failed",
  unknown: "Outcome unknown"
} as const

const AttemptPoint = ({ step }: { readonly step: AttemptStep }) => {
  const { attempt, outcome, waited } = step
  const meaning = attempt.errorCode === null ? undefined : meaningOf(attempt.errorCode, attempt.httpStatus)
  return (
    <li class={`timeline-step timeline-${outcome}`}>
      <p class="timeline-head">
        <b>
          Attempt {attempt.number}: {meaning?.label ?? outcomeWords[outcome]}
        </b>
        {meaning === undefined && attempt.httpStatus !== null ? <span>HTTP {attempt.httpStatus}</span> : null}
        <Time at={attempt.startedAt} exact />
      </p>
      <p class="timeline-detail">
        {attempt.trigger === "manual" ? "re-sent by hand, " : "made "}
        {waited < 1000 ? "at once" : `${durationText(waited)} later`}
        {attempt.durationMs === null ? null : `, took ${durationText(attempt.durationMs)}`}
      </p>
      {meaning === undefined ? null : (
        <p>
          {meaning.meaning} <span class="timeline-remedy">{meaning.remedy}</span>
        </p>
      )}
    </li>
  )
}

const pointOf = (step: Exclude<TimelineStep, AttemptStep>) => {
  switch (step.kind) {
    case "created":
      return { style: "", words: "Created" }
    case "running":
      return { style: "timeline-running", words: `Attempt ${step.number} is under way` }
    case "next": {
      const words = `Attempt ${step.number}${step.manual ? ", the re-send," : ""} is made `
      return { style: "timeline-next", words, countdown: <Countdown to={step.at} /> }
    }
    case "ended":
      return {
        style: `timeline-${step.state} timeline-end`,
        words: step.state === "delivered" ? "Delivered" : "Failed for good"
      }
  }
}

const OtherPoint = ({ step }: { readonly step: Exclude<TimelineStep, AttemptStep> }) => {
  const { countdown, style, words } = pointOf(step)
  return (
    <li class={`timeline-step ${style}`}>
      <p class="timeline-head">
        <b>
          {words}
          {countdown}
        </b>
        {step.kind === "running" ? null : <Time at={step.at} exact />}
      </p>
    </li>
  )
}

/** A delivery's timeline from its creation to its end or next attempt, with the wait before each attempt. */
export const AttemptTimeline = ({ delivery }: { readonly delivery: DeliveryDetail }) => (
  <ol class="timeline">
    {timelineOf(delivery).map((step) =>
      step.kind === "attempt" ? (
        <AttemptPoint step={step} key={`attempt-${step.attempt.number}`} />
      ) : (
        <OtherPoint step={step} key={step.kind} />
      )
    )}
  </ol>
)
