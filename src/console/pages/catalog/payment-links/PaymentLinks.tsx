import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { type AnswerOf, call } from "../../../api/Call.ts"
import { isAt, itemsAt, numberAt, textAt, valueAt } from "../../../api/Reading.ts"
import { isSupported } from "../../../api/Supported.ts"
import { Button } from "../../../components/Button.tsx"
import { Id } from "../../../components/Copy.tsx"
import { useDraft } from "../../../components/forms/Draft.ts"
import { Checkbox, CountField, TextArea } from "../../../components/forms/Field.tsx"
import { Form } from "../../../components/forms/Form.tsx"
import { filled, Reader } from "../../../components/forms/Reader.ts"
import { Empty } from "../../../components/Loaded.tsx"
import { Page } from "../../../components/Page.tsx"
import { Tabs } from "../../../components/Tabs.tsx"
import { useWorkspace } from "../../../state/Session.ts"
import { useUrlState } from "../../../state/UrlState.ts"
import { priceWords } from "../prices/PriceWords.ts"
import { type AddressFormProps, AddressList, NewAddress } from "./AddressList.tsx"
import { CheckoutPageList, NewPageForm } from "./CheckoutPages.tsx"
import { firstItem, itemsIn } from "./ItemDraft.ts"
import { ItemsField } from "./ItemsField.tsx"

const names = { prefix: "line_items", adjustable: "adjustable_quantity" }

const emptyLink = { items: firstItem, allowsCodes: false, limit: "", closedMessage: "", thanks: "" }

const readLink = ({ allowsCodes, closedMessage, items, limit, thanks }: typeof emptyLink) => {
  const reader = new Reader()
  const most = reader.count("restrictions.completed_sessions.limit", limit)
  const message = thanks.trim()
  return reader.done({
    line_items: itemsIn(reader, items, names).map(({ bounds, price, quantity }) => ({
      price,
      quantity,
      ...(bounds === undefined ? {} : { adjustable_quantity: { enabled: true, ...bounds } })
    })),
    ...(allowsCodes ? { allow_promotion_codes: true } : {}),
    ...(most === undefined ? {} : { restrictions: { completed_sessions: { limit: most } } }),
    ...filled({ inactive_message: closedMessage.trim() }),
    ...(message === ""
      ? {}
      : {
          after_completion: { type: "hosted_confirmation" as const, hosted_confirmation: { custom_message: message } }
        })
  })
}

const LinkForm = ({ onClose, onCreated }: AddressFormProps) => {
  const { field, form, problems } = useDraft({
    initial: emptyLink,
    read: readLink,
    send: (payload, idempotencyKey) => call("paymentLinks", "create", { payload }, { idempotencyKey }),
    onDone: ({ url }) => onCreated(url ?? "")
  })
  return (
    <Form {...form} submit="Create link" onCancel={onClose}>
      <ItemsField {...field("items")} {...names} problems={problems} />
      <Checkbox {...field("allowsCodes", "allow_promotion_codes")} label="Payers may enter a promotion code" />
      <CountField
        {...field("limit", "restrictions.completed_sessions.limit")}
        label="Limit"
        required={false}
        hint="The number of sales after which the link closes."
      />
      <TextArea
        {...field("thanks", "after_completion.hosted_confirmation.custom_message")}
        label="Message after payment"
        required={false}
        rows={2}
        maxLength={500}
      />
      <TextArea
        {...field("closedMessage", "inactive_message")}
        label="Message when it is closed"
        required={false}
        rows={2}
        maxLength={500}
      />
    </Form>
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
      { head: "Sells", cell: (link) => <Items link={link} /> },
      { head: "Sales", cell: salesOf },
      { head: "Link", cell: ({ id }) => <Id value={id} /> }
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

export default function PaymentLinks() {
  const { can, path } = useWorkspace()
  const [{ tab }] = useUrlState("tab")
  const [isCreating, setCreating] = useState(false)
  const tabs = [
    { id: "links", label: "At the provider", href: path("/payment-links"), about: "paymentLinks.list" },
    { id: "pages", label: "Checkout pages", href: path("/payment-links?tab=pages"), about: "checkoutPages.list" }
  ] as const
  const items = tabs.filter(({ about }) => isSupported(about))
  const isPages = (items.find(({ id }) => id === tab) ?? items[0])?.id === "pages"
  const create = can("payments:write", isPages ? "checkoutPages.create" : "paymentLinks.create") ? (
    <Button kind="primary" onClick={() => setCreating(true)}>
      {isPages ? "New checkout page" : "New payment link"}
    </Button>
  ) : undefined
  return (
    <Page title={isPages ? "Checkout pages" : "Payment links"} actions={create}>
      <Tabs label="Kinds of links" current={isPages ? "pages" : "links"} items={items} />
      {isPages ? <CheckoutPageList action={create} /> : <PaymentLinkList action={create} />}
      {isCreating && (
        <NewAddress
          key={isPages}
          what={isPages ? "checkout page" : "payment link"}
          form={isPages ? NewPageForm : LinkForm}
          onClose={() => setCreating(false)}
        />
      )}
    </Page>
  )
}
