import { useState } from "preact/hooks"
import { call } from "../../api/Call.ts"
import { formatAmount } from "../../components/amounts.ts"
import { Confirm } from "../../components/Dialog.tsx"
import { SelectField } from "../../components/Field.tsx"
import { MoneyField } from "../../components/MoneyField.tsx"
import { filled } from "../../components/Reader.ts"
import { useSubmit } from "../../state/Query.ts"
import { toast } from "../../state/Toasts.ts"
import type { Charge } from "./PaymentRecord.ts"
import { refundableOf } from "./Statuses.ts"

const reasons = [
  { value: "", label: "No reason given" },
  { value: "requested_by_customer", label: "Requested by the customer" },
  { value: "duplicate", label: "Duplicate payment" },
  { value: "fraudulent", label: "Fraudulent" }
] as const

type Reason = (typeof reasons)[number]["value"]

const problemWith = (amount: number | undefined, left: number, currency: string): string | undefined => {
  if (amount === undefined) return "Write how much to refund."
  if (amount < 1) return "Refund more than nothing."
  return amount > left ? `At most ${formatAmount(left, currency)} can still be refunded.` : undefined
}

export const RefundDialog = ({ charge, onClose }: { readonly charge: Charge; readonly onClose: () => void }) => {
  const currency = charge.currency ?? ""
  const left = refundableOf(charge)
  const [amount, setAmount] = useState<number | undefined>(left)
  const [reason, setReason] = useState<Reason>("")
  const [isChecked, setChecked] = useState(false)
  const problem = problemWith(amount, left, currency)
  const submission = useSubmit(
    (idempotencyKey) => {
      const payload = { charge: charge.id, ...filled({ amount }), ...(reason === "" ? {} : { reason }) }
      return call("refunds", "create", { payload }, { idempotencyKey })
    },
    (refund) => {
      const given = formatAmount(refund.amount ?? 0, refund.currency ?? currency)
      toast(refund.status === "succeeded" ? `${given} refunded` : `${given} on the way to the payer`)
      onClose()
    },
    `refunds/${charge.id}`
  )
  return (
    <Confirm
      title="Refund this payment"
      danger
      typed="REFUND"
      confirmLabel={problem === undefined ? `Refund ${formatAmount(amount ?? 0, currency)}` : "Refund"}
      submission={submission}
      onClose={onClose}
      onConfirm={() => {
        setChecked(true)
        // NaN, for unreadable text, is neither too little nor too much
        if (problem === undefined && Number.isInteger(amount)) submission.submit()
      }}
    >
      <p>
        The money goes back to the payer, by the way in which it was paid. A refund can't be taken back, and the
        provider may keep its fee. Destinations that listen for it get <code>payment.refunded</code>. If the refund
        fails later, owners and admins get a mail.
      </p>
      <MoneyField
        name="amount"
        label="Amount"
        value={amount}
        currency={currency}
        onChange={setAmount}
        hint={`${formatAmount(left, currency)} can still be refunded.`}
        problem={isChecked || (amount ?? 0) > left ? problem : undefined}
      />
      <SelectField name="reason" label="Reason" value={reason} onChange={setReason} options={reasons} />
    </Confirm>
  )
}
