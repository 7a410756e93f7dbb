import { call } from "../../api/Call.ts"
import { isSupported } from "../../api/Supported.ts"
import { Button } from "../../components/Button.tsx"
import { ConfirmButton } from "../../components/Dialog.tsx"
import { ErrorNote } from "../../components/Notice.tsx"
import { useSubmit } from "../../state/Query.ts"
import { useSession, useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { type Connection, isLinked, needsOwner } from "./status.ts"

/** Navigates to the provider at once, since the URL works once and for this person only. */
const leaveFor = ({ url }: { readonly url: string }): void => location.assign(url)

const labelOf = (connection: Connection): string => {
  if (connection.status === "not_connected") return "Connect an account"
  if (connection.status === "disconnected") return "Connect it again"
  return connection.status === "onboarding" ? "Continue at the provider" : "Supply what is due"
}

/** Buttons to create or complete an account at the provider, or to grant access to an existing one. */
export const ConnectButtons = ({ connection }: { readonly connection: Connection }) => {
  const { environment, mayManageOrganization } = useWorkspace()
  const onboarding = useSubmit(
    () => call("accountConnection", "startOnboarding", { payload: { environment } }),
    leaveFor
  )
  const oauth = useSubmit(() => call("accountConnection", "startOauth", { payload: { environment } }), leaveFor)
  const isPossible = isSupported("accountConnection.startOnboarding")
  if (!mayManageOrganization || !isPossible || (isLinked(connection) && !needsOwner(connection))) return null
  const error = onboarding.error ?? oauth.error
  return (
    <div class="stack">
      <div class="row">
        <Button kind="primary" busy={onboarding.busy} onClick={onboarding.submit}>
          {labelOf(connection)}
        </Button>
        {connection.canUseExisting && !isLinked(connection) ? (
          <Button busy={oauth.busy} onClick={oauth.submit}>
            Use an existing account
          </Button>
        ) : null}
      </div>
      {error === undefined ? null : <ErrorNote error={error} />}
    </div>
  )
}

const counted = (count: number, one: string, many: string, max?: number): string =>
  max !== undefined && count >= max ? `${max} or more ${many}` : `${count} ${count === 1 ? one : many}`

export const Disconnect = ({ connection }: { readonly connection: Connection }) => {
  const { organization } = useSession()
  const { environment } = useWorkspace()
  const { accountId, disconnecting } = connection
  if (organization.role !== "owner" || accountId === null || !isLinked(connection)) return null
  return (
    <div>
      <ConfirmButton
        button="Disconnect the account"
        title="Disconnect the account?"
        confirmLabel="Disconnect"
        danger
        typed="DISCONNECT"
        action={() => call("accountConnection", "disconnect", { urlParams: { accountId, environment } })}
        onDone={() => toast("The account is disconnected.")}
      >
        <p>
          The account itself stays as it is, with its money and its payouts. But this service no longer acts on it, and
          no longer hears of it:
        </p>
        <ul>
          <li>
            {counted(disconnecting.endpointCount, "destination gets", "destinations get")} no further events of the
            account.
          </li>
          <li>
            {counted(disconnecting.checkoutPageCount, "open checkout page", "open checkout pages")} can't be paid at
            until an account is connected again.
          </li>
          <li>
            {counted(disconnecting.pendingDeliveryCount, "delivery that waits is", "deliveries that wait are", 1000)}{" "}
            still made.
          </li>
          <li>
            Checkout sessions and payment links that are open at the provider stay open there, and can still be paid.
          </li>
          {disconnecting.endsProviderAccess ? <li>The platform's access at the provider ends as well.</li> : null}
        </ul>
        <p>Only connecting the account again reverses it.</p>
      </ConfirmButton>
    </div>
  )
}
