import { Link } from "wouter-preact"
import { call } from "../../api/Call.ts"
import { ConfirmButton } from "../../components/Dialog.tsx"
import { Time } from "../../components/Time.tsx"
import { useQuery } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { Countdown } from "../deliveries/Countdown.tsx"
import { historyPath } from "../deliveries/historyFilters.ts"
import { waitsToRetry } from "../deliveries/timeline.ts"
import { firstWaitingDay } from "../overview/figures.ts"
import { count } from "../overview/format.ts"
import { type Destination, useStatistics } from "./useDestinations.ts"

/** The API's limit of a page. */
const mostRead = 100

/** When the waiting deliveries of a destination were created and are due. The statistics know of those beyond a page. */
const useWaiting = ({ id }: Destination) => {
  const statistics = useStatistics(60_000).data
  const queued = useQuery(
    `deliveries/waiting/${id}`,
    (signal) =>
      call("deliveries", "list", { path: { id }, urlParams: { state: "queued", limit: mostRead } }, { signal }),
    { pollMillis: 15_000 }
  )
  const retries = queued.data?.data.filter(waitsToRetry) ?? []
  const due = retries.flatMap(({ nextAttemptAt }) => nextAttemptAt ?? []).sort()
  const oldest = retries.map(({ createdAt }) => createdAt).sort()[0]
  const hasMore = queued.data?.has_more === true
  const day = hasMore && statistics !== undefined ? firstWaitingDay(statistics, id) : undefined
  const since = day === undefined || (oldest !== undefined && oldest < day) ? oldest : day
  return { shown: retries.length, hasMore, first: due[0], last: due.at(-1), since }
}

/** Says what waits for a further attempt and when that is made, and sends it now by a replay. */
export const Waiting = ({ destination }: { readonly destination: Destination }) => {
  const { can, path } = useWorkspace()
  const { first, hasMore, last, shown, since } = useWaiting(destination)
  if (first === undefined || last === undefined || since === undefined) return null
  const { id } = destination
  return (
    <div class="row">
      <p role="status">
        <Link href={path(historyPath({ destination: id, state: "queued" }))}>
          {hasMore ? `More than ${count(shown)}` : count(shown)} {shown === 1 ? "delivery waits" : "deliveries wait"}
        </Link>{" "}
        for another attempt, which is made without you: the next one <Countdown to={first} />, the last of{" "}
        {hasMore ? "the newest" : "them"} <Time at={last} />. They have not failed for good, so there is nothing to
        recover.
      </p>
      {can("webhook-endpoints:write") && destination.active ? (
        <ConfirmButton
          button="Send now"
          small
          title="Send the events of this time now?"
          confirmLabel="Send now"
          action={(idempotencyKey) =>
            call("eventReplays", "start", { path: { id }, payload: { since } }, { idempotencyKey })
          }
          onDone={() => toast("The replay has begun.")}
        >
          <p>
            This is a replay: all events since <Time at={since} /> are sent again, each as a new delivery, also those
            that have arrived. What waits is still sent at its time. So the receiver gets events twice, and must
            recognize them by their ids.
          </p>
        </ConfirmButton>
      ) : null}
    </div>
  )
}
