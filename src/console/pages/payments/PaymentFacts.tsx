import { Id } from "../../components/Copy.tsx"
import { Money } from "../../components/Money.tsx"
import { Facts, Section } from "../../components/Page.tsx"
import { Time } from "../../components/Time.tsx"
import { Metadata } from "./Metadata.tsx"
import type { PaymentRecord } from "./PaymentRecord.ts"
import { textAt } from "./Reading.ts"

/**
 * The payer, as far as the API tells: without the permission `customers:read` it sends null, and the page then does not
 * even show that something is missing.
 */
const payerOf = ({ charge, intent, session }: PaymentRecord) => {
  const first = (...found: ReadonlyArray<string | undefined>) => found.find((text) => text !== undefined)
  return {
    name: first(textAt(charge, "billing_details", "name"), textAt(session, "customer_details", "name")),
    email: first(
      textAt(charge, "billing_details", "email"),
      textAt(session, "customer_details", "email"),
      textAt(session, "customer_email"),
      textAt(intent, "receipt_email")
    ),
    phone: first(textAt(charge, "billing_details", "phone"), textAt(session, "customer_details", "phone"))
  }
}

/** The main facts of a payment. */
export const PaymentFacts = ({ record }: { readonly record: PaymentRecord }) => {
  const { charge, intent } = record
  if (intent === undefined) return null
  const payer = payerOf(record)
  const customer = textAt(intent, "customer")
  const refunded = charge?.amount_refunded ?? 0
  return (
    <Section title="Payment">
      <Facts
        items={[
          ["Payment", <Id key="id" value={intent.id} />],
          ["Created", <Time key="created" at={intent.created} />],
          ["Received", <Money key="received" amount={intent.amount_received} currency={intent.currency} />],
          ["Refunded", refunded > 0 && <Money key="refunded" amount={refunded} currency={intent.currency} />],
          ["Description", textAt(intent, "description")],
          ["On the bank statement", textAt(intent, "statement_descriptor")],
          ["Why the last attempt failed", textAt(intent, "last_payment_error", "message")],
          ["Canceled because", textAt(intent, "cancellation_reason")],
          ["Customer", customer === undefined ? undefined : <Id key="customer" value={customer} />],
          ["Name", payer.name],
          ["E-mail", payer.email],
          ["Phone", payer.phone]
        ]}
      />
      <Metadata of={intent} />
    </Section>
  )
}
