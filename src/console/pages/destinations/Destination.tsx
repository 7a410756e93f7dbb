import { useParams } from "wouter-preact"
import { call } from "../../api/Call.ts"
import { Badge } from "../../components/Badge.tsx"
import { Id } from "../../components/Copy.tsx"
import { Loaded } from "../../components/Loaded.tsx"
import { Notice } from "../../components/Notice.tsx"
import { Facts, Page, Section } from "../../components/Page.tsx"
import { Tabs } from "../../components/Tabs.tsx"
import { Time } from "../../components/Time.tsx"
import { useQuery } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { useUrlState } from "../../state/UrlState.ts"
import { Activity } from "./Activity.tsx"
import { filterSentences } from "./filterForm.ts"
import { PauseOrActivate } from "./PauseOrActivate.tsx"
import { SendAgain } from "./SendAgain.tsx"
import { Settings } from "./Settings.tsx"
import { Skipped } from "./Skipped.tsx"
import { Snippets } from "./Snippets.tsx"
import type { Destination as DestinationShape } from "./useDestinations.ts"

const tabs = [
  { id: "activity", label: "Activity" },
  { id: "again", label: "Send again" },
  { id: "skipped", label: "Skipped while paused" },
  { id: "verify", label: "Verify events" },
  { id: "settings", label: "Settings" }
] as const

const DestinationFacts = ({ destination }: { readonly destination: DestinationShape }) => {
  const { active, createdAt, events, filters, id, previousSecretExpiresAt, url } = destination
  const sentences = filterSentences(filters)
  return (
    <Section
      title="Destination"
      actions={<Badge tone={active ? "ok" : "warning"}>{active ? "Active" : "Paused"}</Badge>}
    >
      <Facts
        items={[
          ["URL", <Id value={url} full key="url" />],
          [
            "Event types",
            <ul class="type-list" key="types">
              {events.map((type) => (
                <li key={type}>
                  <code>{type}</code>
                </li>
              ))}
            </ul>
          ],
          [
            "Filters",
            sentences.length === 0 ? "None: every event of these types" : `Only events ${sentences.join(", ")}`
          ],
          ["Id", <Id value={id} full key="id" />],
          ["Created", <Time at={createdAt} key="created" />],
          [
            "Previous secret",
            previousSecretExpiresAt === null ? null : (
              <span key="previous">
                Also signs new events until <Time at={previousSecretExpiresAt} />
              </span>
            )
          ]
        ]}
      />
    </Section>
  )
}

const Shown = ({ destination, tab }: { readonly destination: DestinationShape; readonly tab: string }) => {
  switch (tab) {
    case "again":
      return <SendAgain destination={destination} />
    case "skipped":
      return <Skipped destination={destination} />
    case "verify":
      return (
        <Section title="Verify its events">
          <Snippets />
        </Section>
      )
    case "settings":
      return <Settings destination={destination} />
    default:
      return (
        <>
          <DestinationFacts destination={destination} />
          <Activity destination={destination} />
        </>
      )
  }
}

/** One destination: its activity, re-sending, and its settings. */
export default function Destination() {
  const { can, environment, path } = useWorkspace()
  const { id = "" } = useParams()
  const [{ tab }] = useUrlState("tab")
  const query = useQuery(
    `${environment}/endpoints/one/${id}`,
    (signal) => call("endpoints", "get", { path: { id } }, { signal }),
    { pollMillis: 30_000 }
  )
  const mayWrite = can("webhook-endpoints:write")
  const own = path(`/destinations/${id}`)
  const shownTabs = mayWrite ? tabs : tabs.filter((one) => one.id !== "settings")
  const current = shownTabs.find((one) => one.id === tab)?.id ?? "activity"
  return (
    <Page
      title={query.data?.name ?? "Destination"}
      back={{ href: path("/destinations"), label: "Destinations" }}
      actions={query.data !== undefined && mayWrite ? <PauseOrActivate destination={query.data} /> : null}
    >
      <Loaded query={query}>
        {(destination) => (
          <>
            {destination.active ? null : (
              <Notice tone="warning" title="Paused">
                <p>
                  It gets no new events: those that match are listed under “Skipped while paused”. What was queued
                  before is still delivered.
                </p>
              </Notice>
            )}
            <Tabs
              label="Views of this destination"
              current={current}
              items={shownTabs.map((one) => ({
                ...one,
                href: one.id === "activity" ? own : `${own}?tab=${one.id}`
              }))}
            />
            <Shown destination={destination} tab={current} />
          </>
        )}
      </Loaded>
    </Page>
  )
}
