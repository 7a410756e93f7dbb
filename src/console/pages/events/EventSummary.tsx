import { Money } from "../../components/Money.tsx"
import { moneyOf, subjectOf } from "./eventSummary.ts"

export const EventSummary = ({ event }: { readonly event: unknown }) => {
  const money = moneyOf(event)
  const subject = subjectOf(event)
  return (
    <span class="event-summary">
      {money === undefined ? null : <Money {...money} />}
      {subject === undefined ? null : (
        <code title={subject}>{subject.length > 24 ? `${subject.slice(0, 23)}…` : subject}</code>
      )}
    </span>
  )
}
