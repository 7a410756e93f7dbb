import { useState } from "preact/hooks"
import { call } from "../../api/Call.ts"
import { Button } from "../../components/Button.tsx"
import { Confirm } from "../../components/Dialog.tsx"
import { invalidate, useSubmit } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import type { Destination } from "./useDestinations.ts"

/** Pauses an active destination after explaining the consequences, or activates a paused one at once. */
export const PauseOrActivate = ({ destination }: { readonly destination: Destination }) => {
  const { environment } = useWorkspace()
  const [asked, setAsked] = useState(false)
  const { active, id, name } = destination
  const { busy, error, reset, submit } = useSubmit(
    () => call("endpoints", "update", { path: { id }, payload: { active: !active } }),
    (changed) => {
      setAsked(false)
      toast(changed.active ? `${changed.name} is active: new events are sent to it.` : `${changed.name} is paused.`)
      invalidate(`${environment}/endpoints`)
    }
  )
  return (
    <>
      <Button
        kind={active ? "plain" : "primary"}
        onClick={() => {
          reset()
          setAsked(true)
        }}
      >
        {active ? "Pause" : "Activate"}
      </Button>
      <Confirm
        title={active ? `Pause ${name}?` : `Activate ${name}?`}
        open={asked}
        onClose={() => setAsked(false)}
        onConfirm={submit}
        confirmLabel={active ? "Pause" : "Activate"}
        busy={busy}
        error={error}
      >
        {active ? (
          <p>
            No new events are sent to it. Those that match in the meantime are listed under “Skipped while paused”, so
            that you can catch up. What is queued already is still delivered.
          </p>
        ) : (
          <p>
            New events are sent to it from now on. Those that it skipped are not sent by themselves: “Send again”
            replays them.
          </p>
        )}
      </Confirm>
    </>
  )
}
