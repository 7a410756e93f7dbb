import type { ComponentChildren } from "preact"
import { type AnswerOf, call } from "../../api/Call.ts"
import { Badge } from "../../components/Badge.tsx"
import { Copy, Id } from "../../components/Copy.tsx"
import { Empty, Pages } from "../../components/Loaded.tsx"
import { Table } from "../../components/Table.tsx"
import { invalidate, usePages } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { isAt, itemsAt, numberAt, textAt, valueAt } from "../payments/Reading.ts"
import { ActiveButton } from "./ActiveButton.tsx"
import { ActiveFilter, useActiveFilter } from "./ActiveFilter.tsx"
import { priceWords } from "./PriceWords.ts"

type PaymentLink = AnswerOf<"paymentLinks", "get">

/** The provider's payment links. */
export const PaymentLinkList = ({ action }: { readonly action: ComponentChildren }) => {
  const { can, environment } = useWorkspace()
  const { query, shown } = useActiveFilter()
  const mayWrite = can("payments:write")
  const list = usePages<PaymentLink>(
    `${environment}/catalog/payment-links?${shown}`,
    (after, signal) =>
      call(
        "paymentLinks",
        "list",
        { urlParams: { limit: 25, ...query, ...(after === undefined ? {} : { starting_after: after }) } },
        { signal }
      ),
    ({ id }) => id
  )
  return (
    <>
      <ActiveFilter active="Open" inactive="Closed" />
      <Pages
        list={list}
        empty={
          shown === "" ? (
            <Empty title="No payment links yet" action={action}>
              A payment link is a page of the provider at which anybody who has its address can pay, again and again.
            </Empty>
          ) : (
            <Empty title={shown === "active" ? "No link is open" : "No link is closed"}>
              Clear the filter to see all links.
            </Empty>
          )
        }
      >
        {(links) => (
          <Table
            caption="Payment links, newest first"
            head={[
              "Sells",
              "Sales",
              "Status",
              "Link",
              { label: "Address", hidden: true },
              ...(mayWrite ? [{ label: "Actions", hidden: true }] : [])
            ]}
            rows={links.map((link) => ({
              key: link.id,
              cells: [
                <Items key="items" link={link} />,
                salesOf(link),
                link.active === true ? (
                  <Badge key="status" tone="ok">
                    Open
                  </Badge>
                ) : (
                  <Badge key="status">Closed</Badge>
                ),
                <Id key="id" value={link.id} />,
                typeof link.url === "string" ? <Copy key="url" text={link.url} label="Copy link" /> : "–",
                ...(mayWrite
                  ? [
                      <ActiveButton
                        key="active"
                        isActive={link.active === true}
                        words={["Close", "Open"]}
                        of={`the link ${link.id}`}
                        set={(active) => call("paymentLinks", "update", { path: { id: link.id }, payload: { active } })}
                        onDone={() => invalidate(`${environment}/catalog/payment-links`)}
                      />
                    ]
                  : [])
              ]
            }))}
          />
        )}
      </Pages>
    </>
  )
}

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

/** How often a link was paid at: the provider counts it only if there is a limit. */
const salesOf = (link: PaymentLink): string => {
  const limit = numberAt(link, "restrictions", "completed_sessions", "limit")
  return limit === undefined
    ? "No limit"
    : `${numberAt(link, "restrictions", "completed_sessions", "count") ?? 0} of ${limit}`
}
