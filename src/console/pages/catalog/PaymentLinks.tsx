import { useState } from "preact/hooks"
import { Button } from "../../components/Button.tsx"
import { Page } from "../../components/Page.tsx"
import { Tabs } from "../../components/Tabs.tsx"
import { useWorkspace } from "../../state/Session.ts"
import { useUrlState } from "../../state/UrlState.ts"
import { CheckoutPageList } from "./CheckoutPageList.tsx"
import { NewCheckoutPage } from "./NewCheckoutPage.tsx"
import { NewPaymentLink } from "./NewPaymentLink.tsx"
import { PaymentLinkList } from "./PaymentLinkList.tsx"

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
