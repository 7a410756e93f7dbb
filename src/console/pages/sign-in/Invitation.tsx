import { useLocation } from "wouter-preact"
import { call } from "../../api/Call.ts"
import { ButtonLink } from "../../components/Button.tsx"
import { Form } from "../../components/forms/Form.tsx"
import { Loaded } from "../../components/Loaded.tsx"
import { Notice } from "../../components/Notice.tsx"
import { Time } from "../../components/Time.tsx"
import { PlainPage } from "../../shell/PlainPage.tsx"
import { useQuery, useSubmit } from "../../state/Query.ts"
import { signedIn } from "../../state/Session.ts"
import { roleWords } from "../people/roles.ts"
import { forgetToken, useLinkToken } from "./useLinkToken.ts"

const Accept = ({ token }: { readonly token: string }) => {
  const [, navigate] = useLocation()
  const preview = useQuery(`invitation/${token}`, (signal) =>
    call("invitation", "preview", { payload: { token } }, { signal })
  )
  const submission = useSubmit(
    () => call("invitation", "accept", { payload: { token } }),
    (session) => {
      forgetToken()
      signedIn(session)
      navigate("/", { replace: true })
    }
  )
  return (
    <PlainPage title="Invitation">
      <Loaded query={preview} lines={3}>
        {({ email, expiresAt, organization, role }) => (
          <Form submission={submission} submit="Accept the invitation">
            <p>
              You are invited to the organization <strong>{organization}</strong> with the role <strong>{role}</strong>:{" "}
              {roleWords[role]}.
            </p>
            <p>
              Accepting signs you in in this browser as <strong>{email}</strong>.
            </p>
            <p class="quiet">
              The invitation works once, until <Time at={expiresAt} />.
            </p>
          </Form>
        )}
      </Loaded>
    </PlainPage>
  )
}

export default function Invitation() {
  const token = useLinkToken()
  if (token !== "") return <Accept key={token} token={token} />
  return (
    <PlainPage title="Invitation">
      <Notice tone="warning" title="This link is not complete">
        <p>Open it again from the mail. If your mail program cuts it, copy the whole link into the address bar.</p>
      </Notice>
      <ButtonLink href="/sign-in">Sign in instead</ButtonLink>
    </PlainPage>
  )
}
