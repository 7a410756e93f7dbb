import { computed, effect, signal } from "@preact/signals"
import { useLocation } from "wouter-preact"
import type { ApiError } from "../api/ApiError.ts"
import { toApiError } from "../api/ApiError.ts"
import { currentPath, environmentIn, isOwnPath } from "../api/Base.ts"
import { type AnswerOf, call, type OperationKey, onSessionEnd, sessionBegan, setOrganization } from "../api/Call.ts"
import { isSupported } from "../api/Supported.ts"
import { clearQueries } from "./Query.ts"

export type Session = AnswerOf<"session", "get">
export type Organization = NonNullable<Session["organization"]>
export type Environment = Session["environment"]

/** The state of the session. `ended` distinguishes a session that has just ended from none at all. */
type SessionState =
  | { readonly kind: "loading" }
  | { readonly kind: "unreachable"; readonly error: ApiError }
  | { readonly kind: "signedOut"; readonly ended: boolean }
  | { readonly kind: "signedIn"; readonly session: Session }

export const sessionState = signal<SessionState>({ kind: "loading" })

const current = computed(() => (sessionState.value.kind === "signedIn" ? sessionState.value.session : undefined))

effect(() => setOrganization(current.value?.organization?.id))

/** Notifies the browser's other tabs, which share the session cookie, of a changed or ended session. */
const otherTabs = new BroadcastChannel("connected-payments.session")

const isSame = (one: Session | undefined, other: Session): boolean =>
  one?.person.id === other.person.id && one.organization?.id === other.organization?.id

const note = (session: Session): void => {
  if (!isSame(current.value, session)) clearQueries()
  sessionState.value = { kind: "signedIn", session }
}

export const signedIn = (session: Session): void => {
  sessionBegan()
  note(session)
  otherTabs.postMessage("signed in")
}

const signedOut = (ended: boolean): void => {
  clearQueries()
  sessionState.value = { kind: "signedOut", ended }
}

onSessionEnd(() => {
  const state = sessionState.value
  if (state.kind !== "signedOut") signedOut(state.kind === "signedIn")
})

export const loadSession = async (): Promise<void> => {
  try {
    note(await call("session", "get"))
  } catch (failure) {
    const error = toApiError(failure)
    // `onSessionEnd` has handled a 401; after any other failure, a known session stays valid
    if (error.status !== 401 && sessionState.value.kind !== "signedIn") {
      sessionState.value = { kind: "unreachable", error }
    }
  }
}

/** Reloads a changed session here and in the other tabs. */
export const sessionChanged = async (): Promise<void> => {
  await loadSession()
  otherTabs.postMessage("changed")
}

export const selectWorkspace = async (environment: Environment): Promise<void> =>
  note(await call("session", "selectWorkspace", { payload: { environment } }))

export const signOut = async (everywhere: boolean): Promise<void> => {
  await call("session", everywhere ? "endAll" : "end")
  signedOut(false)
  otherTabs.postMessage("signed out")
}

otherTabs.addEventListener("message", ({ data }) => {
  if (data === "signed out") signedOut(true)
  else void loadSession()
})

/** The session, for signed-in pages only. */
export const useSession = (): Session & { readonly organization: Organization } => {
  const session = current.value
  if (session === undefined || session.organization === null) {
    throw new Error("This page is for signed-in members of an organization")
  }
  return { ...session, organization: session.organization }
}

export const useWorkspace = (): {
  readonly environment: Environment
  /** Whether the person has a permission in this workspace, such as `products:write`, and the provider an operation. */
  readonly can: (permission: string, operation?: OperationKey) => boolean
  readonly mayManageOrganization: boolean
  /** A path within this workspace, for links: `path("/deliveries")` is `/sandbox/deliveries`. */
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
    can: (permission, operation) =>
      permissions.includes(permission) && (operation === undefined || isSupported(operation)),
    mayManageOrganization: organization.role === "owner" || organization.role === "admin",
    path: (rest) => `/${environment}${rest === "/" ? "" : rest}`
  }
}

export const mayEnter = (workspaces: Session["workspaces"], environment: Environment | undefined): boolean =>
  workspaces.some((workspace) => workspace.environment === environment)

/** The default workspace: the selected one if the person may still enter it, otherwise the first. */
export const firstWorkspace = ({
  environment,
  workspaces
}: Pick<Session, "environment" | "workspaces">): Environment =>
  mayEnter(workspaces, environment) ? environment : (workspaces[0]?.environment ?? "sandbox")

const returnKey = "connected-payments.return-to"
const returnMillis = 15 * 60 * 1000

export const rememberReturn = (path: string): void => {
  try {
    localStorage.setItem(returnKey, JSON.stringify({ path, until: Date.now() + returnMillis }))
  } catch {
    // Without storage, the first page opens instead of the requested one
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

export const openPage = (): string => `${currentPath()}${location.search}`
