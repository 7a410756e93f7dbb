import { type AnswerOf, call } from "../../api/Call.ts"
import { capitalized, isAt, itemsAt, numberAt, plainWords, textAt, valueAt } from "../../api/Reading.ts"
import { isSupported } from "../../api/Supported.ts"
import { Badge, OnOffBadge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Id } from "../../components/Copy.tsx"
import { ConfirmButton } from "../../components/Dialog.tsx"
import { useFields } from "../../components/forms/Draft.ts"
import { TextField } from "../../components/forms/Field.tsx"
import { Form } from "../../components/forms/Form.tsx"
import { Empty, Loaded } from "../../components/Loaded.tsx"
import { ErrorNote, Notice } from "../../components/Notice.tsx"
import { Facts, Page, Section } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { Time } from "../../components/Time.tsx"
import { useQuery, useSubmit } from "../../state/Query.ts"
import { useSession, useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { useUrlState } from "../../state/UrlState.ts"
import { type Connection, isLinked, linkedInWords, needsOwner, statusWords } from "./status.ts"
import { wordsOfVisit } from "./visits.ts"

/** Navigates to the provider at once, since the URL works once and for this person only. */
const leaveFor = ({ url }: { readonly url: string }): void => location.assign(url)

const labelOf = (connection: Connection): string => {
  if (connection.status === "not_connected") return "Connect an account"
  if (connection.status === "disconnected") return "Connect it again"
  return connection.status === "onboarding" ? "Continue at the provider" : "Supply what is due"
}

/** Buttons to create or complete an account at the provider, or to grant access to an existing one. */
const ConnectButtons = ({ connection }: { readonly connection: Connection }) => {
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

const Disconnect = ({ connection }: { readonly connection: Connection }) => {
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
          no longer gets its events:
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

type Record = AnswerOf<"returnUrls", "get">

const operators = <span class="quiet">The operator's page</span>

const Editor = ({ record }: { readonly record: Record }) => {
  const { draft, field } = useFields({ successUrl: record.successUrl ?? "", cancelUrl: record.cancelUrl ?? "" })
  const submission = useSubmit(
    () => {
      const payload = { successUrl: draft.successUrl.trim() || null, cancelUrl: draft.cancelUrl.trim() || null }
      return call("returnUrls", "set", { payload })
    },
    () => toast("The return pages are saved.")
  )
  return (
    <Form submission={submission} submit="Save">
      <TextField
        {...field("successUrl")}
        label="After payment"
        hint="Where payers come back to once they have paid. Empty: the operator's page."
        type="url"
        required={false}
      />
      <TextField
        {...field("cancelUrl")}
        label="Without payment"
        hint="Where payers come back to if they leave without paying. Empty: the operator's page."
        type="url"
        required={false}
      />
    </Form>
  )
}

const ReturnUrls = () => {
  const { mayManageOrganization } = useWorkspace()
  const record = useQuery("return-urls", (signal) => call("returnUrls", "get", {}, { signal }))
  return (
    <Section
      title="Return pages"
      lead="Where payers go from checkout. A page confirms nothing, since whoever knows its address can open it: rely on the events."
    >
      <Loaded query={record} lines={2}>
        {(answer) =>
          mayManageOrganization ? (
            <Editor key={answer.updatedAt ?? ""} record={answer} />
          ) : (
            <Facts
              items={[
                ["After payment", answer.successUrl ?? operators],
                ["Without payment", answer.cancelUrl ?? operators]
              ]}
            />
          )
        }
      </Loaded>
    </Section>
  )
}

const scheduleInWords = (settings: unknown): string => {
  const days = [
    ...itemsAt(settings, "schedule", "weekly_payout_days"),
    ...itemsAt(settings, "schedule", "monthly_payout_days")
  ]
  const interval = textAt(settings, "schedule", "interval") ?? "as the provider decides"
  return days.length === 0 ? interval : `${interval}: ${days.join(", ")}`
}

/** When and where the account is paid out; only the account's owner can change this, at the provider. */
const Payouts = () => {
  const settings = useQuery("account/payouts", (signal) => call("account", "payoutSettings", {}, { signal }))
  return (
    <Section title="Payouts" lead="When and where the account is paid out. Its owner changes that at the provider.">
      <Loaded query={settings}>
        {(answer) => {
          const delay = numberAt(answer, "delay_days") ?? textAt(answer, "delay_days")
          const destinations = valueAt(answer, "destinations")
          return (
            <>
              <Facts
                items={[
                  [
                    "Status",
                    <Badge key="status" tone={textAt(answer, "status") === "enabled" ? "ok" : "warning"}>
                      {capitalized(textAt(answer, "status") ?? "unknown")}
                    </Badge>
                  ],
                  ["Schedule", capitalized(scheduleInWords(answer))],
                  ["Funds are held for", delay === undefined ? "an unknown time" : `${delay} days`]
                ]}
              />
              {!Array.isArray(destinations) ? (
                <p class="quiet">The provider does not show this platform where the account is paid out.</p>
              ) : destinations.length === 0 ? (
                <Empty title="No bank account is known yet">
                  <p>The account's owner adds one at the provider.</p>
                </Empty>
              ) : (
                <Table
                  caption="Where the account is paid out"
                  items={destinations.map((fields: unknown, at) => ({ id: String(at), fields }))}
                  columns={[
                    {
                      head: "Bank account or card",
                      cell: ({ fields }) => (
                        <span class="row">
                          {textAt(fields, "bank_name") ?? plainWords(textAt(fields, "type") ?? "Destination")}
                          {isAt(fields, "default") ? <Badge>Default</Badge> : null}
                        </span>
                      )
                    },
                    { head: "Ends in", cell: ({ fields }) => <code>…{textAt(fields, "last4") ?? "????"}</code> },
                    { head: "Currency", cell: ({ fields }) => textAt(fields, "currency")?.toUpperCase() ?? "–" },
                    { head: "Country", cell: ({ fields }) => textAt(fields, "country") ?? "–" }
                  ]}
                />
              )}
            </>
          )
        }}
      </Loaded>
    </Section>
  )
}

const yesOrNo = (isOn: boolean) => <OnOffBadge isOn={isOn} words={["Yes", "Not yet"]} off="warning" />

const Requirements = ({ requirements }: Connection) => {
  const { currentDeadline, currentlyDueCount, disabledReason, pastDueCount, pendingVerificationCount } = requirements
  if (currentlyDueCount + pastDueCount + pendingVerificationCount === 0 && disabledReason === null) return null
  return (
    <Notice
      tone={pastDueCount > 0 || disabledReason !== null ? "problem" : "warning"}
      title="What the provider asks for"
    >
      <ul>
        {pastDueCount > 0 ? <li>{pastDueCount} overdue</li> : null}
        {currentlyDueCount > 0 ? (
          <li>
            {currentlyDueCount} to supply{currentDeadline === null ? "" : " by "}
            {currentDeadline === null ? null : <Time at={currentDeadline} />}
          </li>
        ) : null}
        {pendingVerificationCount > 0 ? <li>{pendingVerificationCount} being checked by the provider</li> : null}
        {disabledReason === null ? null : (
          <li>
            The provider's reason: <code>{disabledReason}</code>
          </li>
        )}
      </ul>
    </Notice>
  )
}

const Status = ({ connection }: { readonly connection: Connection }) => {
  const { mayManageOrganization } = useWorkspace()
  const words = statusWords(connection)
  const linked = isLinked(connection)
  return (
    <>
      <div class="row">
        <Badge tone={words.tone}>{words.label}</Badge>
        <span>{words.explanation}</span>
      </div>
      {connection.current ? null : (
        <Notice tone="warning">
          <p>The provider could not be asked just now. This is what it reported last.</p>
        </Notice>
      )}
      {linked ? <Requirements {...connection} /> : null}
      {connection.accountId === null ? null : (
        <Facts
          items={[
            ["Account", <Id key="id" value={connection.accountId} full />],
            ["Can charge", linked ? yesOrNo(connection.chargesEnabled) : null],
            ["Is paid out", linked ? yesOrNo(connection.payoutsEnabled) : null],
            [
              "Connected",
              connection.linkedAt === null ? null : (
                <span key="linked">
                  <Time at={connection.linkedAt} /> <span class="quiet">{linkedInWords(connection)}</span>
                </span>
              )
            ],
            ["Disconnected", connection.disconnectedAt && <Time key="out" at={connection.disconnectedAt} />]
          ]}
        />
      )}
      <ConnectButtons connection={connection} />
      {mayManageOrganization || linked ? null : (
        <p class="quiet">An owner or admin of your organization connects the account.</p>
      )}
      <Disconnect connection={connection} />
    </>
  )
}

const Visit = () => {
  const [visit, change] = useUrlState("onboarding", "oauth")
  const words = wordsOfVisit("onboarding", visit.onboarding) ?? wordsOfVisit("oauth", visit.oauth)
  if (words === undefined) return null
  return (
    <div role="status">
      <Notice
        tone={words.tone}
        actions={
          <Button small onClick={() => change({ onboarding: "", oauth: "" })}>
            Close
          </Button>
        }
      >
        <p>{words.text}</p>
      </Notice>
    </div>
  )
}

export default function Account() {
  const { can, environment } = useWorkspace()
  const connection = useQuery("account", (signal) => call("accountConnection", "get", {}, { signal }))
  const status = connection.data?.status
  return (
    <Page
      title="Account"
      lead={
        environment === "sandbox"
          ? "The test account of the payment provider that this workspace works with."
          : "The account of the payment provider that this workspace works with."
      }
    >
      <Visit />
      <Section title="Connection">
        <Loaded query={connection}>{(answer) => <Status connection={answer} />}</Loaded>
      </Section>
      {status === "connected" && can("payment-account:read", "account.payoutSettings") ? <Payouts /> : null}
      <ReturnUrls />
    </Page>
  )
}
