import { useState } from "preact/hooks"
import { useLocation } from "wouter-preact"
import { Button } from "../../components/Button.tsx"
import { TextField } from "../../components/Field.tsx"
import { Page } from "../../components/Page.tsx"
import { Tabs } from "../../components/Tabs.tsx"
import { useWorkspace } from "../../state/Session.ts"
import { useUrlState } from "../../state/UrlState.ts"
import { NewCheckout } from "./NewCheckout.tsx"
import { Charges, Intents, Sessions } from "./PaymentLists.tsx"

/** The id of a payment, or of its charge or checkout session. */
const idForm = /^(?:pi|ch|py|cs)_[A-Za-z0-9_]{1,250}$/

const FindById = () => {
  const { path } = useWorkspace()
  const [, navigate] = useLocation()
  const [id, setId] = useState("")
  const [isRefused, setRefused] = useState(false)
  const open = (event: Event) => {
    event.preventDefault()
    const written = id.trim()
    if (idForm.test(written)) navigate(path(`/payments/${written}`))
    else setRefused(true)
  }
  return (
    <search>
      <form class="find" onSubmit={open}>
        <TextField
          name="find"
          label="Find by id"
          value={id}
          maxLength={255}
          autocomplete="off"
          onChange={(written) => {
            setId(written)
            setRefused(false)
          }}
          problem={
            isRefused
              ? "Ids of payments begin with pi_, of charges with ch_, of checkout sessions with cs_."
              : undefined
          }
        />
        <Button type="submit">Open</Button>
      </form>
    </search>
  )
}

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
      <div class="payments-top">
        <Tabs
          label="Kinds of payments"
          current={current}
          items={[
            { id: "payments", label: "Payments", href: path("/payments") },
            { id: "charges", label: "Charges", href: path("/payments?tab=charges") },
            { id: "sessions", label: "Checkout sessions", href: path("/payments?tab=sessions") }
          ]}
        />
        <FindById />
      </div>
      {current === "payments" && <Intents />}
      {current === "charges" && <Charges />}
      {current === "sessions" && <Sessions action={newSession} />}
      {isCreating && <NewCheckout onClose={() => setCreating(false)} />}
    </Page>
  )
}
