import { type AnswerOf, call } from "../../api/Call.ts"
import { Button } from "../../components/Button.tsx"
import { useDraft } from "../../components/forms/Draft.ts"
import { TextField } from "../../components/forms/Field.tsx"
import { Form } from "../../components/forms/Form.tsx"
import { Reader } from "../../components/forms/Reader.ts"
import { PagedTable } from "../../components/Loaded.tsx"
import { Time } from "../../components/Time.tsx"
import { toast } from "../../state/Toasts.ts"
import { instant, localAgo } from "../deliveries/times.ts"
import { countedUpTo, mostCounted } from "../overview/format.ts"
import { stateBadges } from "./Replay.tsx"
import type { Destination } from "./useDestinations.ts"
import { useRuns } from "./useRuns.ts"

type Recovery = AnswerOf<"recoveries", "get">

const hour = 60 * 60 * 1000

export const StartRecovery = ({ destination }: { readonly destination: Destination }) => {
  const { field, form } = useDraft({
    initial: () => ({ since: localAgo(24 * hour, Date.now()) }),
    read: (draft) => {
      const reader = new Reader()
      const since = instant(draft.since)
      if (since === null) reader.problems["since"] = "Choose a time"
      return reader.done({ since: since ?? "" })
    },
    send: (payload, idempotencyKey) =>
      call("recoveries", "start", { path: { id: destination.id }, payload }, { idempotencyKey }),
    onDone: ({ total }) =>
      toast(
        total === 0
          ? "Nothing has failed since then."
          : `${countedUpTo(total)} failed deliveries are being queued again.`
      )
  })
  return (
    <Form {...form}>
      <div class="inline-form">
        <TextField {...field("since")} label="Failed since" type="datetime-local" />
        <Button type="submit" kind="primary" busy={form.submission.busy}>
          Recover
        </Button>
      </div>
    </Form>
  )
}

const progressOf = ({ queued, skipped, state, total }: Recovery): string =>
  total === 0
    ? "Nothing had failed"
    : `${queued} of ${total}${state === "running" && total >= mostCounted ? " or more" : ""} queued${skipped === 0 ? "" : `, ${skipped} could not be re-sent`}`

export const Recoveries = ({ destination }: { readonly destination: Destination }) => {
  const list = useRuns(`recoveries/${destination.id}`, (urlParams, signal) =>
    call("recoveries", "list", { path: { id: destination.id }, urlParams }, { signal })
  )
  return (
    <PagedTable
      list={list}
      empty={<p class="quiet">Nothing was recovered yet.</p>}
      caption="Recoveries, newest first"
      columns={[
        { head: "Failed since", cell: ({ since }) => <Time at={since} /> },
        { head: "State", cell: ({ state }) => stateBadges[state] },
        { head: "Progress", cell: progressOf },
        { head: "Started", cell: ({ createdAt }) => <Time at={createdAt} relative /> }
      ]}
    />
  )
}
