import { HttpServerResponse } from "@effect/platform"
import { page, plainStyle } from "../../platform/kit/Page.ts"

/**
 * The pages that mailed links open. They are the same for everybody: the token follows the link's `#`, which browsers
 * do not send, and goes to the service in a request's body when the person presses the button. In a query it would be
 * written into traces, proxies' logs and histories; and if opening the link were enough, a mail scanner that opens
 * every link would use it.
 */

interface PageText {
  readonly title: string
  /** Shown until the preview has loaded. */
  readonly wait: string
  /** The link's purpose, with fields of the preview in braces. */
  readonly intro: string
  readonly button: string
  readonly done: string
  /** Where the token is sent, relative to the page, since a proxy may serve the service below a path. */
  readonly action: string
  readonly preview: string
}

const scriptOf = ({ action, done, intro, preview }: PageText): string => `
const button = document.querySelector("button")
const status = document.querySelector("[role=status]")
const intro = document.querySelector("p")
const token = location.hash.slice(1)
const send = (path) => fetch(path, {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ token })
})
const showWhom = async () => {
  try {
    const response = await send(${JSON.stringify(preview)})
    const link = await response.json()
    if (!response.ok) {
      status.textContent = link.error
      return
    }
    intro.textContent = ${JSON.stringify(intro)}.replace(/{([a-z]+)}/g, (_, field) => link[field])
    button.hidden = false
  } catch {
    status.textContent = "The service could not be reached. Reload the page."
  }
}
if (token === "") status.textContent = "This link is not complete. Open it again from the mail."
else showWhom()
button.addEventListener("click", async () => {
  button.disabled = true
  status.textContent = "One moment…"
  try {
    const response = await send(${JSON.stringify(action)})
    const answer = await response.json()
    if (response.ok) {
      history.replaceState(null, "", location.pathname)
      button.remove()
      status.textContent = ${JSON.stringify(done)}.replace("{email}", () => answer.person.email)
      return
    }
    status.textContent = answer.error
    button.disabled = response.status === 401
  } catch {
    status.textContent = "The service could not be reached. Try again."
    button.disabled = false
  }
})
`

const linkPageOf = (text: PageText): HttpServerResponse.HttpServerResponse =>
  page({
    title: text.title,
    style: `${plainStyle}button{font:inherit;padding:.6rem 1.4rem;cursor:pointer}`,
    script: scriptOf(text),
    allowed: { connect: "'self'" },
    main: `<h1>${text.title}</h1>
<p>${text.wait}</p>
<p><button type="button" hidden>${text.button}</button></p>
<p role="status" aria-live="polite"></p>
<noscript><p>This page needs JavaScript: it sends the token after the # in the link, which your browser does not send on its own.</p></noscript>`
  })

export const signInPage = linkPageOf({
  title: "Sign in",
  wait: "Sign in to connected-payments in this browser.",
  intro: "Sign in to connected-payments in this browser as {email}.",
  button: "Sign in",
  done: "You are signed in as {email}. You can close this page.",
  action: "session",
  preview: "sign-in/preview"
})

export const invitationPage = linkPageOf({
  title: "Invitation",
  wait: "Accept the invitation and sign in to connected-payments in this browser.",
  intro:
    "Accept the invitation to the organization “{organization}” with the role {role}, and sign in to connected-payments in this browser as {email}.",
  button: "Accept the invitation",
  done: "You are a member now, signed in as {email}. You can close this page.",
  action: "invitation",
  preview: "invitation/preview"
})

export interface LinkPageOptions {
  /** The URL of the console, which has its own pages; absent or null if none is served. */
  readonly consoleUrl?: string | null
}

/** To the console's page, or `own` without one. Browsers keep the part after `#`, which no server gets. */
export const linkPage = (
  { consoleUrl = null }: LinkPageOptions,
  name: "sign-in" | "invitation",
  own: HttpServerResponse.HttpServerResponse
): HttpServerResponse.HttpServerResponse =>
  consoleUrl === null
    ? own
    : HttpServerResponse.empty({
        status: 303,
        // Relative to `/identity/sign-in`, since a proxy may serve the service below a path
        headers: { location: `../console/${name}`, "cache-control": "no-store", "referrer-policy": "no-referrer" }
      })
