import { useState } from "preact/hooks"
import { ApiError, call } from "../../api/Call.ts"
import { capitalized } from "../../api/Reading.ts"
import { Button, ButtonLink } from "../../components/Button.tsx"
import { ConfirmButton } from "../../components/Dialog.tsx"
import { Filters } from "../../components/Filters.tsx"
import { FilterField } from "../../components/forms/Field.tsx"
import { Empty, Pages } from "../../components/Loaded.tsx"
import { Page } from "../../components/Page.tsx"
import { usePages } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { useUrlFilters } from "../../state/UrlState.ts"
import { type DestinationNames, namesOf, useDestinations } from "../destinations/useDestinations.ts"
import { EventTypeField } from "../events/EventTypeField.tsx"
import { DeliveryTable, type Selection } from "./DeliveryTable.tsx"
import { deliveryStates, historyFilterNames, historyQuery } from "./historyFilters.ts"
import { TimeFields } from "./TimeFields.tsx"
import { type Delivery, resendOf } from "./timeline.ts"

/** Re-sends one after the other, past refusals; stops if the service can't be reached or limits the rate. */
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
const ResendChosen = ({ chosen, items, onChange }: Selection & { readonly items: ReadonlyArray<Delivery> }) => {
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

type HistoryFilters = ReturnType<typeof useUrlFilters<(typeof historyFilterNames)[number]>>

const FilterRow = ({ field, filters, names, onClear }: HistoryFilters & { readonly names: DestinationNames }) => (
  <Filters onClear={onClear}>
    <FilterField
      {...field("destination")}
      label="Destination"
      options={[
        ...(names ?? []),
        // A link may name a deleted destination, whose deliveries remain
        ...(filters.destination === "" || names?.has(filters.destination) === true
          ? []
          : [[filters.destination, "A deleted destination"] as const])
      ]}
    />
    <FilterField
      {...field("state")}
      label="State"
      options={deliveryStates.map((state) => [state, capitalized(state)])}
    />
    <EventTypeField {...field("type")} />
    <TimeFields field={field} />
  </Filters>
)

const NoDeliveries = ({ hasDestinations }: { readonly hasDestinations: boolean }) => {
  const { can, path } = useWorkspace()
  const [words, page] = hasDestinations
    ? ["Send a test event", "/destinations"]
    : ["Create a destination", "/destinations/new"]
  return (
    <Empty
      title="No deliveries yet"
      action={
        can("webhook-endpoints:write") ? (
          <ButtonLink href={path(page)} kind="primary">
            {words}
          </ButtonLink>
        ) : null
      }
    >
      {hasDestinations
        ? "A delivery appears here as soon as an event happens that a destination subscribes to."
        : "Events are sent to destinations. Create one, then send it a test event."}
    </Empty>
  )
}

export default function Deliveries() {
  const { can } = useWorkspace()
  const filtering = useUrlFilters(...historyFilterNames)
  const { event } = filtering.filters
  const destinations = useDestinations().data
  const query = historyQuery(filtering.filters)
  const list = usePages(
    `deliveries/list/${JSON.stringify(query)}`,
    (page, signal) => call("deliveries", "listAll", { urlParams: { ...query, ...page } }, { signal }),
    { pollMillis: 5000 }
  )
  const [chosen, onChange] = useState<ReadonlySet<string>>(new Set())
  const selection = can("webhook-endpoints:write") ? { chosen, onChange } : undefined
  const names = namesOf(destinations)
  return (
    <Page
      title="Deliveries"
      lead="Every event on its way to a destination, with the outcome of its last attempt. New ones appear automatically."
    >
      <FilterRow {...filtering} names={names} />
      {event === "" ? null : (
        <p class="quiet">
          Only deliveries of the event <code>{event}</code>.
        </p>
      )}
      <Pages
        list={list}
        empty={
          filtering.onClear ? (
            <Empty title="No delivery matches">Widen the filters, or clear them to see the whole history.</Empty>
          ) : (
            <NoDeliveries hasDestinations={destinations?.data.length !== 0} />
          )
        }
      >
        {(items) => (
          <>
            {selection && <ResendChosen items={items} {...selection} />}
            <DeliveryTable
              caption="Deliveries, newest first"
              items={items}
              destinations={names}
              selection={selection}
            />
          </>
        )}
      </Pages>
    </Page>
  )
}
