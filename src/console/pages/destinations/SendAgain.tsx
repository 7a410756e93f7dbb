import { Section } from "../../components/Page.tsx"
import { useWorkspace } from "../../state/Session.ts"
import { Recoveries, StartRecovery } from "./Recover.tsx"
import { Replays, StartReplay } from "./Replay.tsx"
import type { Destination } from "./useDestinations.ts"

/** Sends again to a destination: everything that failed since a time, or the events of a period. */
export const SendAgain = ({ destination }: { readonly destination: Destination }) => {
  const { can } = useWorkspace()
  const mayWrite = can("webhook-endpoints:write")
  return (
    <>
      <Section
        title="Recover what failed"
        lead="After the receiver was down: queues everything that failed for good since a time for one more attempt, at most 72 hours back and 12 attempts in all."
      >
        {mayWrite ? <StartRecovery destination={destination} /> : null}
        <Recoveries destination={destination} />
      </Section>
      <Section
        title="Replay a time"
        lead="For a receiver that is new, had the wrong filters, or lost what it got: sends the events of a period again, whatever happened to them. They keep their ids, so the receiver must recognize what it has processed."
      >
        {mayWrite ? <StartReplay destination={destination} /> : null}
        <Replays destination={destination} />
      </Section>
    </>
  )
}
