import { Id } from "../../components/Copy.tsx"
import { Money } from "../../components/Money.tsx"
import { Facts, Section } from "../../components/Page.tsx"
import { Time } from "../../components/Time.tsx"
import type { Charge } from "./PaymentRecord.ts"
import { capitalized, numberAt, plainWords, textAt } from "./Reading.ts"
import { StatusBadge } from "./StatusBadge.tsx"
import { chargeStatus, methodOf } from "./Statuses.ts"

const expiryOf = (charge: Charge): string | undefined => {
  const month = numberAt(charge, "payment_method_details", "card", "exp_month")
  const year = numberAt(charge, "payment_method_details", "card", "exp_year")
  return month === undefined || year === undefined ? undefined : `${String(month).padStart(2, "0")}/${year}`
}

const riskOf = (charge: Charge): string | undefined => {
  const level = textAt(charge, "outcome", "risk_level")
  return level === undefined || level === "not_assessed" ? undefined : capitalized(plainWords(level))
}

/** A payment's last charge: how it was paid, and the provider's outcome. */
export const ChargeSection = ({ charge }: { readonly charge: Charge }) => {
  const movement = textAt(charge, "balance_transaction")
  return (
    <Section title="Charge">
      <Facts
        items={[
          ["Charge", <Id key="id" value={charge.id} />],
          ["Status", <StatusBadge key="status" status={chargeStatus(charge)} />],
          ["Amount", <Money key="amount" amount={charge.amount} currency={charge.currency} />],
          ["Method", methodOf(charge)],
          ["Card expires", expiryOf(charge)],
          ["Outcome", textAt(charge, "outcome", "seller_message")],
          ["Why it failed", textAt(charge, "failure_message")],
          ["Risk", riskOf(charge)],
          ["Balance transaction", movement === undefined ? undefined : <Id key="movement" value={movement} />],
          ["Created", <Time key="created" at={charge.created} />]
        ]}
      />
    </Section>
  )
}
