import type { ComponentChildren } from "preact"
import { type AnswerOf, call } from "../../api/Call.ts"
import { Id } from "../../components/Copy.tsx"
import { Empty } from "../../components/Loaded.tsx"
import { isAt, itemsAt, numberAt, textAt, valueAt } from "../payments/Reading.ts"
import { AddressList } from "./AddressList.tsx"
import { priceWords } from "./PriceWords.ts"

type PaymentLink = AnswerOf<"paymentLinks", "get">

export const PaymentLinkList = ({ action }: { readonly action: ComponentChildren }) => (
  <AddressList<PaymentLink>
    kind="payment-links"
    caption="Payment links, newest first"
    noun="link"
    load={(urlParams, signal) => call("paymentLinks", "list", { urlParams }, { signal })}
    empty={
      <Empty title="No payment links yet" action={action}>
        A payment link is a page of the provider at which anybody who has its address can pay, again and again.
      </Empty>
    }
    columns={[
      { head: "Sells", cell: (link) => <Items key="items" link={link} /> },
      { head: "Sales", cell: salesOf },
      { head: "Link", cell: ({ id }) => <Id key="id" value={id} /> }
    ]}
    isOpen={({ active }) => active === true}
    urlOf={({ url }) => (typeof url === "string" ? url : undefined)}
    nameOf={({ id }) => `the link ${id}`}
    open={({ id }, active) => call("paymentLinks", "update", { path: { id }, payload: { active } })}
  />
)

const Items = ({ link }: { readonly link: PaymentLink }) => (
  <ul class="sold">
    {itemsAt(link, "line_items", "data").map((item) => {
      const quantity = numberAt(item, "quantity") ?? 1
      return (
        <li key={textAt(item, "id")}>
          {isAt(item, "adjustable_quantity", "enabled") ? "" : quantity === 1 ? "" : `${quantity} × `}
          {textAt(item, "description") ?? textAt(item, "price", "id")}{" "}
          <span class="quiet">
            {priceWords(valueAt(item, "price"))}
            {isAt(item, "adjustable_quantity", "enabled") ? ", the payer chooses how many" : ""}
          </span>
        </li>
      )
    })}
  </ul>
)

/** A link's sales; the provider counts them only if there is a limit. */
const salesOf = (link: PaymentLink): string => {
  const limit = numberAt(link, "restrictions", "completed_sessions", "limit")
  return limit === undefined
    ? "No limit"
    : `${numberAt(link, "restrictions", "completed_sessions", "count") ?? 0} of ${limit}`
}
