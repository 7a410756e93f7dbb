import { call } from "../../api/Call.ts"
import { capitalized, isAt, itemsAt, numberAt, plainWords, textAt, valueAt } from "../../api/Reading.ts"
import { Badge } from "../../components/Badge.tsx"
import { Empty, Loaded } from "../../components/Loaded.tsx"
import { Facts, Section } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { useQuery } from "../../state/Query.ts"

const scheduleInWords = (settings: unknown): string => {
  const days = [
    ...itemsAt(settings, "schedule", "weekly_payout_days"),
    ...itemsAt(settings, "schedule", "monthly_payout_days")
  ]
  const interval = textAt(settings, "schedule", "interval") ?? "as the provider decides"
  return days.length === 0 ? interval : `${interval}: ${days.join(", ")}`
}

/** When and where the account is paid out; only the account's owner can change this, at the provider. */
export const Payouts = () => {
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
