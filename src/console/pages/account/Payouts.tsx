import { call } from "../../api/Call.ts"
import { Badge } from "../../components/Badge.tsx"
import { Empty, Loaded } from "../../components/Loaded.tsx"
import { Facts, Section } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { useQuery } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { capitalized } from "../payments/Reading.ts"

/** The provider's object, parsed defensively: a field not as documented is shown as unknown. */
type Fields = Readonly<Record<string, unknown>>

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const text = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : typeof value === "number" ? String(value) : undefined

const list = (value: unknown): string | undefined =>
  Array.isArray(value) && value.length > 0 ? value.map((item) => String(item)).join(", ") : undefined

const scheduleInWords = (schedule: unknown): string => {
  const fields = isFields(schedule) ? schedule : {}
  const days = list(fields["weekly_payout_days"]) ?? list(fields["monthly_payout_days"])
  const interval = text(fields["interval"]) ?? "as the provider decides"
  return days === undefined ? interval : `${interval}: ${days}`
}

const destinationRows = (destinations: ReadonlyArray<unknown>) =>
  destinations.filter(isFields).map((destination, at) => ({
    key: String(at),
    cells: [
      <span key="name" class="row">
        {text(destination["bank_name"]) ?? text(destination["type"])?.replaceAll("_", " ") ?? "Destination"}
        {destination["default"] === true ? <Badge>Default</Badge> : null}
      </span>,
      <code key="last">…{text(destination["last4"]) ?? "????"}</code>,
      text(destination["currency"])?.toUpperCase() ?? "–",
      text(destination["country"]) ?? "–"
    ]
  }))

/** When and where the account is paid out; only the account's owner can change this, at the provider. */
export const Payouts = () => {
  const { environment } = useWorkspace()
  const settings = useQuery(`${environment}/account/payouts`, (signal) =>
    call("account", "payoutSettings", {}, { signal })
  )
  return (
    <Section title="Payouts" lead="When and where the account is paid out. Its owner changes that at the provider.">
      <Loaded query={settings}>
        {(answer: Fields) => {
          const { delay_days: delay, destinations, schedule, status } = answer
          return (
            <>
              <Facts
                items={[
                  [
                    "Status",
                    <Badge key="status" tone={status === "enabled" ? "ok" : "warning"}>
                      {capitalized(text(status) ?? "unknown")}
                    </Badge>
                  ],
                  ["Schedule", capitalized(scheduleInWords(schedule))],
                  ["Funds are held for", text(delay) === undefined ? "an unknown time" : `${text(delay)} days`]
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
                  head={["Bank account or card", "Ends in", "Currency", "Country"]}
                  rows={destinationRows(destinations)}
                />
              )}
            </>
          )
        }}
      </Loaded>
    </Section>
  )
}
