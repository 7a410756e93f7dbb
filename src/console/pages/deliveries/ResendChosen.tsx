import { ApiError, call } from "../../api/Call.ts"
import { Button } from "../../components/Button.tsx"
import { ConfirmButton } from "../../components/Dialog.tsx"
import { toast } from "../../state/Toasts.ts"
import type { Selection } from "./DeliveryTable.tsx"
import { type Delivery, resendOf } from "./timeline.ts"

/** Re-sends one after the other, and goes on after a refusal; stops if the service can't be reached or has had enough. */
const resendAll = async (ids: ReadonlyArray<string>) => {
  const refusals: Array<string> = []
  for (const id of ids) {
    try {
      await call("deliveries", "retry", { path: { id } })
    } catch (failure) {
      if (!(failure instanceof ApiError) || failure.status !== 409) throw failure
      refusals.push(failure.message)
    }
  }
  return { queued: ids.length - refusals.length, refusals }
}

/** The buttons that choose failed deliveries among those shown, and re-send them. */
export const ResendChosen = ({ chosen, items, onChange }: Selection & { readonly items: ReadonlyArray<Delivery> }) => {
  const possible = items.filter((delivery) => resendOf(delivery, Date.now()).allowed).map(({ id }) => id)
  const ids = possible.filter((id) => chosen.has(id))
  if (possible.length === 0) return null
  return (
    <div class="row">
      <Button small onClick={() => onChange(new Set(ids.length === possible.length ? [] : possible))}>
        {ids.length === possible.length ? "Choose none" : `Choose all that failed (${possible.length})`}
      </Button>
      {ids.length === 0 ? null : (
        <ConfirmButton
          button={`Re-send ${ids.length}`}
          kind="primary"
          small
          title={`Re-send ${ids.length === 1 ? "this delivery" : `these ${ids.length} deliveries`}?`}
          confirmLabel="Re-send"
          action={() => resendAll(ids)}
          onDone={({ queued, refusals }) => {
            onChange(new Set())
            toast(
              `${queued} queued for one more attempt.${refusals.length === 0 ? "" : ` ${refusals.length} refused: ${refusals[0]}`}`
            )
          }}
        >
          <p>Each is queued at once for one attempt, with the same event id and the secrets of its creation.</p>
        </ConfirmButton>
      )}
    </div>
  )
}
