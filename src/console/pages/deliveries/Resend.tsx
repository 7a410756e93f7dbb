import { useState } from "preact/hooks"
import { call } from "../../api/Call.ts"
import { Button } from "../../components/Button.tsx"
import { Confirm } from "../../components/Dialog.tsx"
import { Time } from "../../components/Time.tsx"
import { invalidate, useSubmit } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { type Delivery, refusedResend, resendOf } from "./timeline.ts"

/** Re-sends a failed delivery, with the conditions; shows why if that is not possible. */
export const Resend = ({ delivery }: { readonly delivery: Delivery }) => {
  const { can, environment } = useWorkspace()
  const [asked, setAsked] = useState(false)
  const { busy, error, reset, submit } = useSubmit(
    () => call("deliveries", "retry", { path: { id: delivery.id } }),
    () => {
      setAsked(false)
      toast("Queued for one more attempt.")
      invalidate(`${environment}/deliveries`)
      invalidate(`${environment}/events`)
    }
  )
  const resend = resendOf(delivery, Date.now())
  if (!resend.allowed) {
    return delivery.state === "failed" ? <p class="quiet">Can’t be re-sent: {refusedResend[resend.reason]}</p> : null
  }
  if (!can("webhook-endpoints:write")) return null
  return (
    <div class="resend">
      <Button
        kind="primary"
        onClick={() => {
          reset()
          setAsked(true)
        }}
      >
        Re-send
      </Button>
      <p class="quiet">
        {resend.attemptsLeft} of 12 attempts left, until <Time at={resend.until} />.
      </p>
      <Confirm
        title="Re-send this delivery?"
        open={asked}
        onClose={() => setAsked(false)}
        onConfirm={submit}
        confirmLabel="Re-send"
        busy={busy}
        error={error}
      >
        <p>
          It is queued at once for one attempt, with the same event id and the secrets of its creation. If the attempt
          fails, the delivery is failed again.
        </p>
      </Confirm>
    </div>
  )
}
