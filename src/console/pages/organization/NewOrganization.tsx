import { useState } from "preact/hooks"
import { useLocation } from "wouter-preact"
import { toApiError } from "../../api/ApiError.ts"
import { call } from "../../api/Call.ts"
import { Button } from "../../components/Button.tsx"
import { Form } from "../../components/forms/Form.tsx"
import { PlainPage } from "../../shell/PlainPage.tsx"
import { useSubmit } from "../../state/Query.ts"
import { sessionChanged, sessionState, signOut } from "../../state/Session.ts"
import { toast } from "../../state/Toasts.ts"
import { OrganizationName } from "../people/OrganizationSection.tsx"

export default function NewOrganization() {
  const [name, setName] = useState("")
  const [path, navigate] = useLocation()
  const state = sessionState.value
  const email = state.kind === "signedIn" ? state.session.person.email : ""
  const submission = useSubmit(async () => {
    await call("organizations", "create", { payload: { name } })
    await sessionChanged()
    // Unless another page was asked for
    if (path === "/") navigate("/sandbox/start", { replace: true })
  })
  return (
    <PlainPage title="Create your organization">
      <p class="quiet">
        An organization holds payments, keys and people, in two workspaces: a sandbox to try everything without real
        money, and production. You become its owner.
      </p>
      <Form submission={submission} submit="Create the organization">
        <OrganizationName value={name} onChange={setName} />
      </Form>
      <p class="quiet">
        You are signed in as {email}. If colleagues already have an organization, ask them for an invitation instead.
      </p>
      <Button
        kind="quiet"
        onClick={() => {
          signOut(false).catch((failure: unknown) => toast(toApiError(failure).message, "problem"))
        }}
      >
        Sign out
      </Button>
    </PlainPage>
  )
}
