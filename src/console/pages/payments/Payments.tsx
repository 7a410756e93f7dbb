import { useState } from "preact/hooks"
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
  const newSession = can("payments:write") ? (
    <Button kind="primary" onClick={() => setCreating(true)}>
      New checkout session
    </Button>
  ) : undefined
  const current = tab === "charges" || tab === "sessions" ? tab : "payments"
  return (
    <Page title="Payments" actions={newSession}>
      <Tabs
        label="Kinds of payments"
        current={current}
        items={[
          { id: "payments", label: "Payments", href: path("/payments") },
          { id: "charges", label: "Charges", href: path("/payments?tab=charges") },
          { id: "sessions", label: "Checkout sessions", href: path("/payments?tab=sessions") }
        ]}
      />
      {current === "payments" && <Intents />}
      {current === "charges" && <Charges />}
      {current === "sessions" && <Sessions action={newSession} />}
      {isCreating && <NewCheckout onClose={() => setCreating(false)} />}
    </Page>
  )
}
