import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { call } from "../../api/Call.ts"
import { formatAmount } from "../../components/amounts.ts"
import { Button } from "../../components/Button.tsx"
import { Confirm, Dialog } from "../../components/Dialog.tsx"
import { Empty } from "../../components/Loaded.tsx"
import { Time } from "../../components/Time.tsx"
import { invalidate, useSubmit } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { AddressList } from "./AddressList.tsx"
import { type CheckoutPage, draftOfPage, pageChanges } from "./CheckoutPageDraft.ts"
import { CheckoutPageForm } from "./CheckoutPageForm.tsx"
import { everyPeriod } from "./PriceWords.ts"

interface EditCheckoutPageProps {
  readonly page: CheckoutPage
  readonly onClose: () => void
}

/** Edits a checkout page, whose URL stays the same. */
const EditCheckoutPage = ({ onClose, page }: EditCheckoutPageProps) => {
  const { environment } = useWorkspace()
  const [draft, setDraft] = useState(() => draftOfPage(page))
  const changes = pageChanges(page, draft)
  const { busy, error, submit } = useSubmit(
    () =>
      call("checkoutPages", "update", {
        path: { id: page.id },
        payload: changes.kind === "ready" ? changes.value : {}
      }),
    ({ title }) => {
      toast(`${title} was changed`)
      invalidate(`${environment}/catalog/checkout-pages`)
      onClose()
    }
  )
  const isChanged = changes.kind === "ready" && Object.keys(changes.value).length > 0
  return (
    <Dialog title={`Edit ${page.title}`} open onClose={onClose}>
      <p class="quiet">Its address stays the same, and so do the payments that payers have begun there.</p>
      <CheckoutPageForm
        draft={draft}
        onChange={setDraft}
        problems={changes.kind === "problems" ? changes.problems : undefined}
        busy={busy}
        error={error}
        submitLabel="Save"
        onSubmit={() => (isChanged ? submit() : onClose())}
        onClose={onClose}
      />
    </Dialog>
  )
}

type CheckoutPageItem = CheckoutPage["items"][number]

/** An item's price, as the page shows it. */
const itemWords = ({ currency, recurring, unitAmount }: CheckoutPageItem): string => {
  const period = recurring === null ? undefined : everyPeriod(recurring.interval, recurring.intervalCount)
  const amount = unitAmount === null ? `an amount in ${currency.toUpperCase()}` : formatAmount(unitAmount, currency)
  return period === undefined ? amount : `${amount} ${period}`
}

/** The service's own checkout pages. */
export const CheckoutPageList = ({ action }: { readonly action: ComponentChildren }) => {
  const [edited, setEdited] = useState<CheckoutPage | undefined>(undefined)
  const [deleted, setDeleted] = useState<CheckoutPage | undefined>(undefined)
  return (
    <>
      <AddressList<CheckoutPage>
        kind="checkout-pages"
        caption="Checkout pages, newest first"
        noun="page"
        load={(urlParams, signal) => call("checkoutPages", "list", { urlParams }, { signal })}
        empty={
          <Empty title="No checkout pages yet" action={action}>
            A checkout page has a title, a text and an image of your own. Payers choose there what they want, and go on
            to the provider to pay. No shop is needed.
          </Empty>
        }
        columns={[
          {
            head: "Title",
            cell: (page) => (
              <a key="title" href={page.url} target="_blank" rel="noreferrer">
                {page.title}
              </a>
            )
          },
          {
            head: "Sells",
            cell: (page) => (
              <ul key="items" class="sold">
                {page.items.map((item) => (
                  <li key={item.price}>
                    {item.name} <span class="quiet">{itemWords(item)}</span>
                  </li>
                ))}
              </ul>
            )
          },
          { head: "Created", cell: (page) => <Time key="created" at={page.createdAt} /> }
        ]}
        isOpen={({ active }) => active}
        urlOf={({ url }) => url}
        nameOf={({ title }) => title}
        open={({ id }, active) => call("checkoutPages", "update", { path: { id }, payload: { active } })}
        actions={(page) => (
          <>
            <Button small kind="quiet" label={`Edit ${page.title}`} onClick={() => setEdited(page)}>
              Edit
            </Button>
            <Button small kind="quiet" label={`Delete ${page.title}`} onClick={() => setDeleted(page)}>
              Delete
            </Button>
          </>
        )}
      />
      {edited === undefined ? null : <EditCheckoutPage page={edited} onClose={() => setEdited(undefined)} />}
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
