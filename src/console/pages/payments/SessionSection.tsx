import { call } from "../../api/Call.ts"
import { itemsAt, numberAt, textAt } from "../../api/Reading.ts"
import { StatusBadge } from "../../components/Badge.tsx"
import { Copy, Id } from "../../components/Copy.tsx"
import { ConfirmButton } from "../../components/Dialog.tsx"
import { Loaded } from "../../components/Loaded.tsx"
import { Money } from "../../components/Money.tsx"
import { Facts, Section } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { Time } from "../../components/Time.tsx"
import { useQuery } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { Metadata } from "./Metadata.tsx"
import type { CheckoutSession } from "./PaymentRecord.ts"
import { sessionStatus } from "./Statuses.ts"

const answersOf = (session: CheckoutSession): ReadonlyArray<readonly [string, string]> =>
  itemsAt(session, "custom_fields").flatMap((field) => {
    const label = textAt(field, "label", "custom") ?? textAt(field, "key")
    const answer = ["text", "numeric", "dropdown"]
      .map((type) => textAt(field, type, "value"))
      .find((value) => value !== undefined)
    return label === undefined || answer === undefined ? [] : [[label, answer] as const]
  })

const allLines = 100

const Lines = ({ session }: { readonly session: CheckoutSession }) => {
  const query = useQuery(`payments/lines/${session.id}`, (signal) =>
    call("checkoutSessions", "lineItems", { path: { id: session.id }, urlParams: { limit: allLines } }, { signal })
  )
  return (
    <Loaded query={query} lines={2}>
      {({ data }) => (
        <Table
          caption="What the session sells"
          items={data}
          columns={[
            { head: "Item", cell: ({ description }) => description ?? "–" },
            { head: "Quantity", align: "end", cell: ({ quantity }) => quantity ?? "–" },
            {
              head: "Total",
              align: "end",
              cell: ({ amount_total: total, currency }) => <Money amount={total} currency={currency} />
            }
          ]}
        />
      )}
    </Loaded>
  )
}

/** A payment's checkout session: its items and, while it is open, its URL and a button to expire it. */
export const SessionSection = ({ session }: { readonly session: CheckoutSession }) => {
  const { can } = useWorkspace()
  const isOpen = session.status === "open"
  const discount = numberAt(session, "total_details", "amount_discount") ?? 0
  const status = sessionStatus(session)
  return (
    <Section
      title="Checkout session"
      actions={
        isOpen && (
          <>
            {typeof session.url === "string" ? <Copy text={session.url} label="Copy the payer's link" /> : null}
            {can("payments:write", "checkoutSessions.expire") ? (
              <ConfirmButton
                button="End session"
                small
                title="End this session?"
                danger
                confirmLabel="End session"
                action={(idempotencyKey) =>
                  call("checkoutSessions", "expire", { path: { id: session.id } }, { idempotencyKey })
                }
                onDone={() => toast("The session has ended")}
              >
                <p>
                  The payer's page then says that it has expired. Nothing was charged, and nothing can be paid there.
                </p>
              </ConfirmButton>
            ) : null}
          </>
        )
      }
    >
      <Facts
        items={[
          ["Session", <Id key="id" value={session.id} />],
          ["Status", <StatusBadge key="status" status={status} />],
          ["Total", <Money key="total" amount={session.amount_total} currency={session.currency} />],
          ["Discount", discount > 0 && <Money key="discount" amount={discount} currency={session.currency} />],
          ["Sells", session.mode === "subscription" ? "A subscription" : undefined],
          ["Subscription", typeof session.subscription === "string" && <Id key="id" value={session.subscription} />],
          ["Your reference", session.client_reference_id],
          ["Created", <Time key="created" at={session.created} />],
          ["Open until", isOpen && <Time key="until" at={numberAt(session, "expires_at")} />],
          ...answersOf(session)
        ]}
      />
      <Metadata of={session} />
      <Lines session={session} />
    </Section>
  )
}
