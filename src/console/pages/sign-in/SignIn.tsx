import { useEffect, useState } from "preact/hooks"
import { Redirect, useLocation, useSearch } from "wouter-preact"
import { isOwnPath } from "../../api/Base.ts"
import { call } from "../../api/Call.ts"
import { Button } from "../../components/Button.tsx"
import { TextField } from "../../components/forms/Field.tsx"
import { Form } from "../../components/forms/Form.tsx"
import { Loaded } from "../../components/Loaded.tsx"
import { Notice } from "../../components/Notice.tsx"
import { Time } from "../../components/Time.tsx"
import { PlainPage } from "../../shell/PlainPage.tsx"
import { useQuery, useSubmit } from "../../state/Query.ts"
import { rememberReturn, sessionState, signedIn, takeReturn } from "../../state/Session.ts"
import { forgetToken, useLinkToken } from "./useLinkToken.ts"

/** The reason for opening the sign-in page: the page to return to, and whether a session has just ended. */
const useReason = () => {
  const query = new URLSearchParams(useSearch())
  const to = query.get("to") ?? ""
  return { to: isOwnPath(to) ? to : "/", ended: query.has("ended") }
}

const AskForLink = () => {
  const { ended, to } = useReason()
  const [email, setEmail] = useState("")
  const [sentTo, setSentTo] = useState<string | undefined>(undefined)
  const [isLogged, setLogged] = useState(false)
  const submission = useSubmit(
    () => call("signIn", "requestLink", { payload: { email } }),
    ({ toLog }) => {
      setLogged(toLog)
      // The link may open in another tab, which reads the path to return to from here
      if (to !== "/") rememberReturn(to)
      setSentTo(email)
    }
  )
  if (sentTo !== undefined) {
    return (
      <PlainPage title={isLogged ? "Look into the log" : "Check your mailbox"}>
        <p role="status">
          {isLogged
            ? "No mail server is set, so the service has written to its log the link for "
            : "We have sent a link to "}
          <strong>{sentTo}</strong>. It signs you in, works once, and is valid for 15 minutes.
        </p>
        <p class="quiet">
          {isLogged
            ? "It is in the terminal in which the service runs. Open it in this browser."
            : "Open it in this browser. Nothing there after a minute? Check the spam folder, or ask for another link."}
        </p>
        <Button onClick={() => setSentTo(undefined)}>Use another address, or try again</Button>
      </PlainPage>
    )
  }
  return (
    <PlainPage title="Sign in">
      {ended ? (
        <Notice tone="info" title="Your session has ended">
          <p>Sign in again: you come back to where you were.</p>
        </Notice>
      ) : null}
      <p class="quiet">There is no password. Type your e-mail address, and we send you a link that signs you in.</p>
      <Form submission={submission} submit="Send me a link">
        <TextField
          name="email"
          label="E-mail address"
          type="email"
          inputMode="email"
          autocomplete="email"
          maxLength={254}
          value={email}
          onChange={setEmail}
          required
        />
      </Form>
    </PlainPage>
  )
}

/** Shows whom a mailed link will sign in; only the button uses it up. */
const UseLink = ({ token }: { readonly token: string }) => {
  const [, navigate] = useLocation()
  const preview = useQuery(`sign-in/${token}`, (signal) =>
    call("signIn", "preview", { payload: { token } }, { signal })
  )
  const submission = useSubmit(
    () => call("signIn", "redeem", { payload: { token } }),
    (session) => {
      forgetToken()
      const to = takeReturn() ?? "/"
      signedIn(session)
      navigate(to, { replace: true })
    }
  )
  const invalid = submission.error?.status === 401 || preview.error?.status === 401
  const another = (
    <Button
      onClick={() => {
        forgetToken()
        dispatchEvent(new HashChangeEvent("hashchange"))
      }}
    >
      Ask for a new link
    </Button>
  )
  return (
    <PlainPage title="Sign in">
      <Loaded query={preview} lines={2}>
        {({ email, expiresAt }) => (
          <>
            <p>
              Sign in in this browser as <strong>{email}</strong>?
            </p>
            <Form submission={submission} {...(invalid ? {} : { submit: "Sign in" })}>
              <p class="quiet">
                The link works once, until <Time at={expiresAt} />.
              </p>
            </Form>
          </>
        )}
      </Loaded>
      {invalid ? another : null}
    </PlainPage>
  )
}

/** Redirects a person who is already signed in, such as by the link in another tab. */
export default function SignIn() {
  const token = useLinkToken()
  const { to } = useReason()
  const state = sessionState.value
  useEffect(() => {
    if (token === "" && state.kind === "signedIn") takeReturn()
  }, [token, state.kind])
  if (token !== "") return <UseLink key={token} token={token} />
  return state.kind === "signedIn" ? <Redirect to={to} replace /> : <AskForLink />
}
