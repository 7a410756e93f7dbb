import { computed, effect, signal } from "@preact/signals"
import { useLocation } from "wouter-preact"
import type { ApiError } from "../api/ApiError.ts"
import { toApiError } from "../api/ApiError.ts"
import { currentPath, environmentIn, isOwnPath } from "../api/Base.ts"
import { type AnswerOf, call, onSessionEnd, setOrganization } from "../api/Call.ts"
import { clearQueries } from "./Query.ts"

/** Who is signed in, and what they may do: one state for all pages. */

export type Session = AnswerOf<"session", "get">
export type Organization = NonNullable<Session["organization"]>
export type Environment = Session["environment"]

/** What is known of the session. `ended` keeps apart who was signed in a moment ago from who never was. */
export type SessionState =
  | { readonly kind: "loading" }
  | { readonly kind: "unreachable"; readonly error: ApiError }
  | { readonly kind: "signedOut"; readonly ended: boolean }
  | { readonly kind: "signedIn"; readonly session: Session }

export const sessionState = signal<SessionState>({ kind: "loading" })

/** The session of who is signed in; undefined otherwise. */
const current = computed(() => (sessionState.value.kind === "signedIn" ? sessionState.value.session : undefined))

effect(() => setOrganization(current.value?.organization?.id))

/** Tells the other tabs of this browser, which share the session's cookie, that it is another or no longer. */
const otherTabs = new BroadcastChannel("connected-payments.session")

const isSame = (one: Session | undefined, other: Session): boolean =>
  one?.person.id === other.person.id && one.organization?.id === other.organization?.id

/** Notes who is signed in; what somebody else has read is forgotten. */
const note = (session: Session): void => {
  if (!isSame(current.value, session)) clearQueries()
  sessionState.value = { kind: "signedIn", session }
}

/** Notes who has just signed in, and tells the other tabs. */
export const signedIn = (session: Session): void => {
  note(session)
  otherTabs.postMessage("signed in")
}

/** Notes that nobody is signed in any more, and forgets what was read. */
const signedOut = (ended: boolean): void => {
  clearQueries()
  sessionState.value = { kind: "signedOut", ended }
}

onSessionEnd(() => {
  const state = sessionState.value
  if (state.kind !== "signedOut") signedOut(state.kind === "signedIn")
})

/** Asks the service who is signed in. */
export const loadSession = async (): Promise<void> => {
  try {
    note(await call("session", "get"))
  } catch (failure) {
    const error = toApiError(failure)
    // `onSessionEnd` has noted a 401; a session that is known stays, whatever else went wrong
    if (error.status !== 401 && sessionState.value.kind !== "signedIn") {
      sessionState.value = { kind: "unreachable", error }
    }
  }
}

/** Reads the session again after a change of it, here and in the other tabs. */
export const sessionChanged = async (): Promise<void> => {
  await loadSession()
  otherTabs.postMessage("changed")
}

/** Makes a workspace the one that a new tab opens. */
export const selectWorkspace = async (environment: Environment): Promise<void> =>
  note(await call("session", "selectWorkspace", { payload: { environment } }))

/** Signs out on the service, here and in the other tabs. */
export const signOut = async (everywhere: boolean): Promise<void> => {
  await call("session", everywhere ? "endAll" : "end")
  signedOut(false)
  otherTabs.postMessage("signed out")
}

otherTabs.addEventListener("message", ({ data }) => {
  if (data === "signed out") signedOut(true)
  else void loadSession()
})

/** The session of who is signed in. Only inside of signed-in pages. */
export const useSession = (): Session & { readonly organization: Organization } => {
  const session = current.value
  if (session === undefined || session.organization === null) {
    throw new Error("This page is for signed-in members of an organization")
  }
  return { ...session, organization: session.organization }
}

/** The workspace that the page's address names, and what the signed-in person may do there. */
export const useWorkspace = (): {
  readonly environment: Environment
  /** Whether the person has a permission in this workspace, such as `products:write`. */
  readonly can: (permission: string) => boolean
  /** Whether the person is owner or admin. */
  readonly mayManageOrganization: boolean
  /** A path of this workspace for links: `path("/deliveries")` is `/sandbox/deliveries`. */
  readonly path: (rest: string) => string
} => {
  const session = useSession()
  const { organization } = session
  const [location] = useLocation()
  const environment = environmentIn(location) ?? firstWorkspace(session)
  const entered = session.workspaces.find((workspace) => workspace.environment === environment)
  const permissions: ReadonlyArray<string> = entered?.permissions ?? []
  return {
    environment,
    can: (permission) => permissions.includes(permission),
    mayManageOrganization: organization.role === "owner" || organization.role === "admin",
    path: (rest) => `/${environment}${rest === "/" ? "" : rest}`
  }
}

/** Whether a person may enter a workspace. */
export const mayEnter = (workspaces: Session["workspaces"], environment: Environment | undefined): boolean =>
  workspaces.some((workspace) => workspace.environment === environment)

/** The workspace that is opened if the address names none: the selected one, if the person may still enter it. */
export const firstWorkspace = ({
  environment,
  workspaces
}: Pick<Session, "environment" | "workspaces">): Environment =>
  mayEnter(workspaces, environment) ? environment : (workspaces[0]?.environment ?? "sandbox")

/**
 * The page to open after signing in. It is kept for the tab that the mailed link opens, and for no longer than such a
 * link is valid.
 */
const returnKey = "connected-payments.return-to"
const returnMillis = 15 * 60 * 1000

export const rememberReturn = (path: string): void => {
  try {
    localStorage.setItem(returnKey, JSON.stringify({ path, until: Date.now() + returnMillis }))
  } catch {
    // A browser that stores nothing opens the first page in place of the one that was asked for
  }
}

export const takeReturn = (): string | undefined => {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(returnKey) ?? "null")
    localStorage.removeItem(returnKey)
    if (typeof stored !== "object" || stored === null || !("path" in stored) || !("until" in stored)) return undefined
    const { path, until } = stored
    return typeof path === "string" && typeof until === "number" && until > Date.now() && isOwnPath(path)
      ? path
      : undefined
  } catch {
    return undefined
  }
}

/** The page that is open, with its filters, as a path below the console. */
export const openPage = (): string => `${currentPath()}${location.search}`
