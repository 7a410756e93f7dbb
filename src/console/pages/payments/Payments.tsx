import { useState } from "preact/hooks"
import { isSupported } from "../../api/Supported.ts"
import { Button } from "../../components/Button.tsx"
import { Page } from "../../components/Page.tsx"
import { Tabs } from "../../components/Tabs.tsx"
import { useWorkspace } from "../../state/Session.ts"
import { useUrlState } from "../../state/UrlState.ts"
import { NewCheckout } from "./NewCheckout.tsx"
import { Charges, Intents, Sessions } from "./PaymentLists.tsx"

export default function Payments() {
  const { can, path } = useWorkspace()
  const [{ tab }] = useUrlState("tab")
  const [isCreating, setCreating] = useState(false)
  const newSession = can("payments:write", "checkoutSessions.create") ? (
    <Button kind="primary" onClick={() => setCreating(true)}>
      New checkout session
    </Button>
  ) : undefined
  const tabs = [
    { id: "payments", label: "Payments", href: path("/payments"), about: "paymentIntents.list" },
    { id: "charges", label: "Charges", href: path("/payments?tab=charges"), about: "charges.list" },
    { id: "sessions", label: "Checkout sessions", href: path("/payments?tab=sessions"), about: "checkoutSessions.list" }
  ] as const
  const items = tabs.filter(({ about }) => isSupported(about))
  const current = items.find(({ id }) => id === tab)?.id ?? items[0]?.id ?? "payments"
  return (
    <Page title="Payments" actions={newSession}>
      <Tabs label="Kinds of payments" current={current} items={items} />
      {current === "payments" && <Intents />}
      {current === "charges" && <Charges />}
      {current === "sessions" && <Sessions action={newSession} />}
      {isCreating && <NewCheckout onClose={() => setCreating(false)} />}
    </Page>
  )
}
