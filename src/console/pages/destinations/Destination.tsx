import { Link, useParams } from "wouter-preact"
import { call } from "../../api/Call.ts"
import { OnOffBadge } from "../../components/Badge.tsx"
import { ButtonLink } from "../../components/Button.tsx"
import { Id } from "../../components/Copy.tsx"
import { ConfirmButton } from "../../components/Dialog.tsx"
import { Empty, Loaded, PagedTable, Pages } from "../../components/Loaded.tsx"
import { Notice } from "../../components/Notice.tsx"
import { Facts, Page, Section } from "../../components/Page.tsx"
import { Tabs } from "../../components/Tabs.tsx"
import { Time } from "../../components/Time.tsx"
import { usePages, useQuery } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { useUrlState } from "../../state/UrlState.ts"
import { Countdown } from "../deliveries/Countdown.tsx"
import { DeliveryTable } from "../deliveries/DeliveryTable.tsx"
import { historyPath } from "../deliveries/historyFilters.ts"
import { waitsToRetry } from "../deliveries/timeline.ts"
import { EventSummary } from "../events/EventTable.tsx"
import { firstWaitingDay } from "../overview/figures.ts"
import { count } from "../overview/format.ts"
import { filterSentences } from "./filterForm.ts"
import { Recoveries, StartRecovery } from "./Recover.tsx"
import { Replays, StartReplay } from "./Replay.tsx"
import { SendTest } from "./SendTest.tsx"
import { Settings } from "./Settings.tsx"
import { Snippets } from "./Snippets.tsx"
import { type Destination as DestinationShape, useStatistics } from "./useDestinations.ts"
import { Warnings } from "./Warnings.tsx"

/** The API's limit of a page. */
const mostRead = 100

/** When the waiting deliveries of a destination were created and are due. The statistics know of those beyond a page. */
const useWaiting = ({ id }: DestinationShape) => {
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

/** Says how many deliveries wait for a further attempt and until when, and sends their events now by a replay. */
const Waiting = ({ destination }: { readonly destination: DestinationShape }) => {
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
          action={(idempotencyKey) =>
            call("eventReplays", "start", { path: { id }, payload: { since } }, { idempotencyKey })
          }
          onDone={() => toast("The replay has begun.")}
        >
          <p>
            This is a replay: all events since <Time at={since} /> are sent again, each as a new delivery, also those
            that have arrived. Waiting deliveries are still sent at their time. So the receiver gets events twice, and
            must recognize them by their ids.
          </p>
        </ConfirmButton>
      ) : null}
    </div>
  )
}

const Skipped = ({ destination }: { readonly destination: DestinationShape }) => {
  const { can, path } = useWorkspace()
  const list = usePages(
    `skipped/${destination.id}`,
    async (urlParams, signal) => {
      const page = await call("endpoints", "skipped", { path: { id: destination.id }, urlParams }, { signal })
      return { ...page, data: page.data.map((skipped) => ({ ...skipped, id: skipped.eventId })) }
    },
    { pollMillis: 15_000 }
  )
  return (
    <Section
      title="Skipped while paused"
      lead="Events that it would have got if it had been active. They have no delivery."
      actions={
        list.items.length > 0 && destination.active && can("webhook-endpoints:write") ? (
          <ButtonLink href={`${path(`/destinations/${destination.id}`)}?tab=again`} small>
            Replay their time
          </ButtonLink>
        ) : null
      }
    >
      <PagedTable
        list={list}
        empty={<Empty title="Nothing was skipped">Events that match while it is paused are listed here.</Empty>}
        caption="Events that were skipped, newest first"
        href={({ id }) => path(`/events/${id}`)}
        columns={[
          { head: "Event", cell: ({ type }) => type },
          { head: "About", cell: ({ event }) => <EventSummary event={event} /> },
          { head: "Skipped", cell: ({ createdAt }) => <Time at={createdAt} /> }
        ]}
      />
    </Section>
  )
}

const Activity = ({ destination }: { readonly destination: DestinationShape }) => {
  const { can, path } = useWorkspace()
  const list = usePages(
    `deliveries/of/${destination.id}`,
    (urlParams, signal) => call("deliveries", "list", { path: { id: destination.id }, urlParams }, { signal }),
    { limit: 5, pollMillis: 5000 }
  )
  return (
    <>
      {can("webhook-endpoints:write") ? <SendTest destination={destination} /> : null}
      <Section
        title="Newest deliveries"
        actions={<Link href={path(historyPath({ destination: destination.id }))}>All of them, with filters</Link>}
      >
        <Pages
          list={list}
          empty={
            <Empty title="Nothing was sent to it yet">
              A delivery appears here as soon as an event happens that it subscribes to.
            </Empty>
          }
        >
          {(items) => (
            <DeliveryTable
              caption={`Deliveries to ${destination.name}, newest first`}
              items={items}
              common="destination"
            />
          )}
        </Pages>
      </Section>
    </>
  )
}

const PauseOrActivate = ({ destination }: { readonly destination: DestinationShape }) => {
  const { active, id, name } = destination
  const word = active ? "Pause" : "Activate"
  return (
    <ConfirmButton
      button={word}
      kind={active ? "plain" : "primary"}
      title={`${word} ${name}?`}
      action={() => call("endpoints", "update", { path: { id }, payload: { active: !active } })}
      onDone={(changed) =>
        toast(changed.active ? `${changed.name} is active: new events are sent to it.` : `${changed.name} is paused.`)
      }
    >
      {active ? (
        <p>
          No new events are sent to it. Those that match in the meantime are listed under “Skipped while paused”, so
          that you can catch up. Events that are already queued are still delivered.
        </p>
      ) : (
        <p>
          New events are sent to it from now on. Those that it skipped are not sent automatically: “Send again” replays
          them.
        </p>
      )}
    </ConfirmButton>
  )
}

/** Sends again to a destination: everything that failed since a time, or the events of a period. */
const SendAgain = ({ destination }: { readonly destination: DestinationShape }) => {
  const { can } = useWorkspace()
  const mayWrite = can("webhook-endpoints:write")
  return (
    <>
      <Section
        title="Recover what failed"
        lead="After the receiver was down: queues everything that failed for good since a time for one more attempt, at most 72 hours back and 12 attempts in all."
      >
        <Waiting destination={destination} />
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
    <Section title="Destination" actions={<OnOffBadge isOn={active} words={["Active", "Paused"]} off="warning" />}>
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

export default function Destination() {
  const { can, path } = useWorkspace()
  const { id = "" } = useParams()
  const [{ tab }] = useUrlState("tab")
  const query = useQuery(`endpoints/one/${id}`, (signal) => call("endpoints", "get", { path: { id } }, { signal }), {
    pollMillis: 30_000
  })
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
                  It gets no new events: those that match are listed under “Skipped while paused”. Events that were
                  queued before are still delivered.
                </p>
              </Notice>
            )}
            <Warnings of={destination} />
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
