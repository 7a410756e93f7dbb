import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { type AnswerOf, call } from "../../api/Call.ts"
import { Button } from "../../components/Button.tsx"
import { Id } from "../../components/Copy.tsx"
import { Dialog } from "../../components/Dialog.tsx"
import { Empty } from "../../components/Loaded.tsx"
import { Page } from "../../components/Page.tsx"
import { Tabs } from "../../components/Tabs.tsx"
import { invalidate, useSubmit } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { useUrlState } from "../../state/UrlState.ts"
import { isAt, itemsAt, numberAt, textAt, valueAt } from "../payments/Reading.ts"
import { AddressList } from "./AddressList.tsx"
import { emptyCheckoutPage, newPage } from "./CheckoutPageDraft.ts"
import { CheckoutPageForm } from "./CheckoutPageForm.tsx"
import { CheckoutPageList } from "./CheckoutPageList.tsx"
import { NewPaymentLink } from "./NewPaymentLink.tsx"
import { priceWords } from "./PriceWords.ts"
import { type LinkToShare, ShareLink } from "./ShareLink.tsx"

/** Creates a checkout page, then shows its URL to share. */
const NewCheckoutPage = ({ onClose }: { readonly onClose: () => void }) => {
  const [created, setCreated] = useState<LinkToShare | undefined>(undefined)
  return (
    <Dialog title="New checkout page" open onClose={onClose}>
      {created === undefined ? (
        <NewPageForm onClose={onClose} onDone={setCreated} />
      ) : (
        <ShareLink link={created} onClose={onClose} />
      )}
    </Dialog>
  )
}

interface NewPageFormProps {
  readonly onClose: () => void
  readonly onDone: (link: LinkToShare) => void
}

const NewPageForm = ({ onClose, onDone }: NewPageFormProps) => {
  const { environment } = useWorkspace()
  const [draft, setDraft] = useState(emptyCheckoutPage)
  const written = newPage(draft)
  const { busy, error, submit } = useSubmit(
    (idempotencyKey) =>
      written.kind === "ready"
        ? call("checkoutPages", "create", { payload: written.value }, { idempotencyKey })
        : Promise.reject(new Error("The form sends nothing that has problems")),
    (page) => {
      invalidate(`${environment}/catalog/checkout-pages`)
      onDone({ url: page.url, what: "checkout page" })
    }
  )
  return (
    <CheckoutPageForm
      draft={draft}
      onChange={setDraft}
      problems={written.kind === "problems" ? written.problems : undefined}
      busy={busy}
      error={error}
      submitLabel="Create page"
      onSubmit={submit}
      onClose={onClose}
    />
  )
}

type PaymentLink = AnswerOf<"paymentLinks", "get">

const PaymentLinkList = ({ action }: { readonly action: ComponentChildren }) => (
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

/** Public payment URLs: the provider's payment links, and the service's own checkout pages. */
export default function PaymentLinks() {
  const { can, path } = useWorkspace()
  const [{ tab }] = useUrlState("tab")
  const [isCreating, setCreating] = useState(false)
  const isPages = tab === "pages"
  const create = can("payments:write") ? (
    <Button kind="primary" onClick={() => setCreating(true)}>
      {isPages ? "New checkout page" : "New payment link"}
    </Button>
  ) : undefined
  const close = () => setCreating(false)
  return (
    <Page title={isPages ? "Checkout pages" : "Payment links"} actions={create}>
      <Tabs
        label="Kinds of links"
        current={isPages ? "pages" : "links"}
        items={[
          { id: "links", label: "At the provider", href: path("/payment-links") },
          { id: "pages", label: "Checkout pages", href: path("/payment-links?tab=pages") }
        ]}
      />
      {isPages ? <CheckoutPageList action={create} /> : <PaymentLinkList action={create} />}
      {isCreating ? isPages ? <NewCheckoutPage onClose={close} /> : <NewPaymentLink onClose={close} /> : null}
    </Page>
  )
}
