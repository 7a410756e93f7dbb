import { Component, type ComponentChildren } from "preact"
import { useEffect } from "preact/hooks"
import { Redirect, Route, Router, Switch, useLocation } from "wouter-preact"
import { consolePath, environmentIn } from "./api/Base.ts"
import { Button } from "./components/Button.tsx"
import { Icon } from "./components/Icon.tsx"
import { ErrorNote, Notice } from "./components/Notice.tsx"
import { Brand } from "./shell/Brand.tsx"
import { lazyPage, NoAccess, NotFound } from "./shell/LazyPage.tsx"
import { PlainPage } from "./shell/PlainPage.tsx"
import { Shell } from "./shell/Shell.tsx"
import {
  firstWorkspace,
  loadSession,
  mayEnter,
  openPage,
  type Session,
  selectWorkspace,
  sessionState
} from "./state/Session.ts"
import { dismissToast, toasts } from "./state/Toasts.ts"

const Splash = () => (
  <main class="plain" id="main">
    <div class="splash" role="status">
      <Brand />
      <span class="for-readers">Loading…</span>
    </div>
  </main>
)

/** The current toasts. The live region is always present, since screen readers announce only what is added to it. */
const Toasts = () => (
  <section class="toasts" aria-label="Messages" aria-live="polite">
    {toasts.value.map(({ id, message, tone }) => (
      <div key={id} class={`toast toast-${tone}`}>
        <Icon name={tone === "ok" ? "check" : "warning"} />
        <span>{message}</span>
        <button type="button" class="icon-button" aria-label="Close this message" onClick={() => dismissToast(id)}>
          <Icon name="close" />
        </button>
      </div>
    ))}
  </section>
)

class ErrorBoundary extends Component<{ readonly children: ComponentChildren }, { readonly failed: boolean }> {
  override state = { failed: false }

  static override getDerivedStateFromError() {
    return { failed: true }
  }

  override componentDidCatch(error: unknown) {
    console.error(error)
  }

  override render() {
    if (!this.state.failed) return this.props.children
    return (
      <main class="plain" id="main">
        <div class="plain-card" role="alert">
          <h1>This page has failed</h1>
          <Notice tone="problem" actions={<Button onClick={() => location.reload()}>Reload</Button>}>
            <p>That is a mistake in the page, not in what you did. Nothing that you had saved is lost.</p>
          </Notice>
        </div>
      </main>
    )
  }
}

const SignIn = lazyPage(() => import("./pages/sign-in/SignIn.tsx"))
const Invitation = lazyPage(() => import("./pages/sign-in/Invitation.tsx"))
const NewOrganization = lazyPage(() => import("./pages/organization/NewOrganization.tsx"))

const pages = [
  ["/", lazyPage(() => import("./pages/overview/Overview.tsx"))],
  ["/start", lazyPage(() => import("./pages/start/Start.tsx"))],
  ["/search", lazyPage(() => import("./pages/search/Search.tsx"))],
  ["/payments", lazyPage(() => import("./pages/payments/Payments.tsx"))],
  ["/payments/:id", lazyPage(() => import("./pages/payments/Payment.tsx"))],
  ["/products", lazyPage(() => import("./pages/catalog/products/Products.tsx"))],
  ["/products/new", lazyPage(() => import("./pages/catalog/products/NewProduct.tsx"))],
  ["/products/:id", lazyPage(() => import("./pages/catalog/products/Product.tsx"))],
  ["/promotion-codes", lazyPage(() => import("./pages/catalog/promotion-codes/PromotionCodes.tsx"))],
  ["/payment-links", lazyPage(() => import("./pages/catalog/payment-links/PaymentLinks.tsx"))],
  ["/destinations", lazyPage(() => import("./pages/destinations/Destinations.tsx"))],
  ["/destinations/new", lazyPage(() => import("./pages/destinations/NewDestination.tsx"))],
  ["/destinations/:id", lazyPage(() => import("./pages/destinations/Destination.tsx"))],
  ["/deliveries", lazyPage(() => import("./pages/deliveries/Deliveries.tsx"))],
  ["/deliveries/:id", lazyPage(() => import("./pages/deliveries/Delivery.tsx"))],
  ["/events", lazyPage(() => import("./pages/events/Events.tsx"))],
  ["/events/:id", lazyPage(() => import("./pages/events/Event.tsx"))],
  ["/keys", lazyPage(() => import("./pages/keys/Keys.tsx"))],
  ["/people", lazyPage(() => import("./pages/people/People.tsx"))],
  ["/audit-log", lazyPage(() => import("./pages/audit/AuditLog.tsx"))],
  ["/account", lazyPage(() => import("./pages/account/Account.tsx"))],
  ["/sessions", lazyPage(() => import("./pages/sessions/Sessions.tsx"))]
] as const

const useSelection = (session: Session): void => {
  const [path] = useLocation()
  const environment = environmentIn(path)
  const selects =
    environment !== undefined && environment !== session.environment && mayEnter(session.workspaces, environment)
  useEffect(() => {
    // A failed save only costs a click in the next tab: each request here names its workspace
    if (selects) selectWorkspace(environment).catch(() => {})
  }, [selects, environment])
}

const Workspaces = ({ session }: { readonly session: Session }) => {
  const [path] = useLocation()
  const environment = environmentIn(path)
  useSelection(session)
  if (environment === undefined) {
    return path === "/" ? <Redirect to={`/${firstWorkspace(session)}`} replace /> : <NotFound />
  }
  if (!mayEnter(session.workspaces, environment)) return <NoAccess environment={environment} />
  return (
    // The key drops all page state on a change of workspace
    <Switch key={environment}>
      {pages.map(([path, Page]) => (
        <Route key={path} path={`/:environment${path === "/" ? "" : path}`}>
          <Page />
        </Route>
      ))}
      <Route>
        <NotFound />
      </Route>
    </Switch>
  )
}

/** Everything behind the sign-in: one page per state of the session. */
const Inside = (): ComponentChildren => {
  const state = sessionState.value
  switch (state.kind) {
    case "loading":
      return <Splash />
    case "unreachable":
      return (
        <PlainPage title="The service does not answer">
          <ErrorNote error={state.error} retry={() => void loadSession()} />
        </PlainPage>
      )
    case "signedOut":
      return <Redirect to={signInPath(openPage(), state.ended)} replace />
    case "signedIn":
      return state.session.organization === null ? (
        <NewOrganization />
      ) : (
        <Shell>
          <Workspaces session={state.session} />
        </Shell>
      )
  }
}

const signInPath = (page: string, ended: boolean): string => {
  const query = new URLSearchParams({ ...(page === "/" ? {} : { to: page }), ...(ended ? { ended: "yes" } : {}) })
  const text = query.toString()
  return `/sign-in${text === "" ? "" : `?${text}`}`
}

/** Contains a page's failure, so that other pages stay reachable. */
const Guarded = ({ children }: { readonly children: ComponentChildren }) => {
  const [path] = useLocation()
  return <ErrorBoundary key={path}>{children}</ErrorBoundary>
}

export const App = () => (
  <Router base={consolePath}>
    <Guarded>
      <Switch>
        <Route path="/sign-in">
          <SignIn />
        </Route>
        <Route path="/invitation">
          <Invitation />
        </Route>
        <Route>
          <Inside />
        </Route>
      </Switch>
    </Guarded>
    <Toasts />
  </Router>
)
