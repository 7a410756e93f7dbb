import { call } from "../../api/Call.ts"
import { Badge, OnOffBadge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Id } from "../../components/Copy.tsx"
import { Loaded } from "../../components/Loaded.tsx"
import { Notice } from "../../components/Notice.tsx"
import { Facts, Page, Section } from "../../components/Page.tsx"
import { Time } from "../../components/Time.tsx"
import { useQuery } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { useUrlState } from "../../state/UrlState.ts"
import { ConnectButtons, Disconnect } from "./Connect.tsx"
import { Payouts } from "./Payouts.tsx"
import { ReturnUrls } from "./ReturnUrls.tsx"
import { type Connection, isLinked, linkedInWords, statusWords } from "./status.ts"
import { wordsOfVisit } from "./visits.ts"

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
