import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { type AnswerOf, call } from "../../api/Call.ts"
import { formatAmount } from "../../components/amounts.ts"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Copy } from "../../components/Copy.tsx"
import { Confirm } from "../../components/Dialog.tsx"
import { Empty, Pages } from "../../components/Loaded.tsx"
import { Table } from "../../components/Table.tsx"
import { Time } from "../../components/Time.tsx"
import { invalidate, usePages, useSubmit } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { ActiveButton } from "./ActiveButton.tsx"
import { ActiveFilter, useActiveFilter } from "./ActiveFilter.tsx"
import { everyPeriod } from "./PriceWords.ts"

type CheckoutPage = AnswerOf<"checkoutPages", "get">
type CheckoutPageItem = CheckoutPage["items"][number]

/** What an item costs, as the page shows it. */
const itemWords = ({ currency, recurring, unitAmount }: CheckoutPageItem): string => {
  const period = recurring === null ? undefined : everyPeriod(recurring.interval, recurring.intervalCount)
  const amount = unitAmount === null ? `an amount in ${currency.toUpperCase()}` : formatAmount(unitAmount, currency)
  return period === undefined ? amount : `${amount} ${period}`
}

/** The pages of the service itself at which payers buy. */
export const CheckoutPageList = ({ action }: { readonly action: ComponentChildren }) => {
  const { can, environment } = useWorkspace()
  const { query, shown } = useActiveFilter()
  const [deleted, setDeleted] = useState<CheckoutPage | undefined>(undefined)
  const mayWrite = can("payments:write")
  const list = usePages<CheckoutPage>(
    `${environment}/catalog/checkout-pages?${shown}`,
    (after, signal) =>
      call(
        "checkoutPages",
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
            <Empty title="No checkout pages yet" action={action}>
              A checkout page has a title, a text and an image of your own. Payers choose there what they want, and go
              on to the provider to pay. No shop is needed.
            </Empty>
          ) : (
            <Empty title={shown === "active" ? "No page is open" : "No page is closed"}>
              Clear the filter to see all pages.
            </Empty>
          )
        }
      >
        {(pages) => (
          <Table
            caption="Checkout pages, newest first"
            head={[
              "Title",
              "Sells",
              "Status",
              "Created",
              { label: "Address", hidden: true },
              ...(mayWrite ? [{ label: "Actions", hidden: true }] : [])
            ]}
            rows={pages.map((page) => ({
              key: page.id,
              cells: [
                <a key="title" href={page.url} target="_blank" rel="noreferrer">
                  {page.title}
                </a>,
                <ul key="items" class="sold">
                  {page.items.map((item) => (
                    <li key={item.price}>
                      {item.name} <span class="quiet">{itemWords(item)}</span>
                    </li>
                  ))}
                </ul>,
                page.active ? (
                  <Badge key="status" tone="ok">
                    Open
                  </Badge>
                ) : (
                  <Badge key="status">Closed</Badge>
                ),
                <Time key="created" at={page.createdAt} />,
                <Copy key="url" text={page.url} label="Copy link" />,
                ...(mayWrite
                  ? [
                      <span key="actions" class="row-actions">
                        <ActiveButton
                          isActive={page.active}
                          words={["Close", "Open"]}
                          of={page.title}
                          set={(active) =>
                            call("checkoutPages", "update", { path: { id: page.id }, payload: { active } })
                          }
                          onDone={() => invalidate(`${environment}/catalog/checkout-pages`)}
                        />
                        <Button small kind="quiet" label={`Delete ${page.title}`} onClick={() => setDeleted(page)}>
                          Delete
                        </Button>
                      </span>
                    ]
                  : [])
              ]
            }))}
          />
        )}
      </Pages>
      {deleted === undefined ? null : <DeletePage page={deleted} onClose={() => setDeleted(undefined)} />}
    </>
  )
}

const DeletePage = ({ onClose, page }: { readonly page: CheckoutPage; readonly onClose: () => void }) => {
  const { environment } = useWorkspace()
  const { busy, error, submit } = useSubmit(
    () => call("checkoutPages", "delete", { path: { id: page.id } }),
    () => {
      toast(`${page.title} was deleted`)
      invalidate(`${environment}/catalog/checkout-pages`)
      onClose()
    }
  )
  return (
    <Confirm
      title={`Delete ${page.title}?`}
      open
      danger
      confirmLabel="Delete page"
      busy={busy}
      error={error}
      onClose={onClose}
      onConfirm={submit}
    >
      <p>
        For good: who opens its address reads that it is gone. To stop selling for a while, close the page instead.
        Sessions that payers have opened already can still be paid.
      </p>
    </Confirm>
  )
}
