import { useEffect, useId, useRef, useState } from "preact/hooks"
import { Link } from "wouter-preact"
import { toApiError } from "../api/ApiError.ts"
import { Icon, type IconName } from "../components/Icon.tsx"
import { signOut, useSession, useWorkspace } from "../state/Session.ts"
import { chooseTheme, type Theme, theme } from "../state/Theme.ts"
import { toast } from "../state/Toasts.ts"

const themes: ReadonlyArray<readonly [theme: Theme, label: string, icon: IconName]> = [
  ["light", "Light", "sun"],
  ["dark", "Dark", "moon"],
  ["system", "System", "system"]
]

export const ThemeSwitch = () => (
  <fieldset class="theme-switch">
    <legend class="for-readers">Appearance</legend>
    {themes.map(([name, label, icon]) => (
      <button key={name} type="button" aria-pressed={theme.value === name} onClick={() => chooseTheme(name)}>
        <Icon name={icon} />
        {label}
      </button>
    ))}
  </fieldset>
)

/** A panel that its button opens; Escape, a click outside it, and the focus leaving it close it. */
const usePanel = () => {
  const [isOpen, setOpen] = useState(false)
  const root = useRef<HTMLDivElement>(null)
  const button = useRef<HTMLButtonElement>(null)
  const closeOutside = (target: EventTarget | null) => {
    if (target instanceof Node && root.current?.contains(target) !== true) setOpen(false)
  }
  useEffect(() => {
    if (!isOpen) return
    const onPointer = ({ target }: Event) => closeOutside(target)
    document.addEventListener("pointerdown", onPointer)
    return () => document.removeEventListener("pointerdown", onPointer)
  }, [isOpen])
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || !isOpen) return
    event.stopPropagation()
    setOpen(false)
    button.current?.focus()
  }
  const onFocusOut = ({ relatedTarget }: FocusEvent) => closeOutside(relatedTarget)
  return { isOpen, setOpen, button, frame: { ref: root, onKeyDown, onFocusOut } }
}

const AccountLinks = ({ onNavigate }: { readonly onNavigate: () => void }) => {
  const { path } = useWorkspace()
  const leave = () => {
    signOut(false).catch((failure: unknown) => toast(toApiError(failure).message, "problem"))
  }
  return (
    <ul>
      <li>
        <Link href={path("/sessions")} onClick={onNavigate}>
          <Icon name="system" />
          Your sessions
        </Link>
      </li>
      <li>
        <button type="button" onClick={leave}>
          <Icon name="out" />
          Sign out
        </button>
      </li>
    </ul>
  )
}

export const AccountMenu = ({ onNavigate }: { readonly onNavigate: () => void }) => {
  const { organization, person } = useSession()
  const { button, frame, isOpen, setOpen } = usePanel()
  const id = useId()
  const navigated = () => {
    setOpen(false)
    onNavigate()
  }
  return (
    <div class="account-menu" {...frame}>
      {isOpen ? (
        <div class="account-panel" id={id}>
          <ThemeSwitch />
          <AccountLinks onNavigate={navigated} />
        </div>
      ) : null}
      <button
        type="button"
        class="account-button"
        ref={button}
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        onClick={() => setOpen(!isOpen)}
      >
        <Icon name="person" />
        <span class="account-who">
          <span class="account-email">{person.email}</span>
          <span class="account-role">{organization.role}</span>
        </span>
        <Icon name="chevron" />
      </button>
    </div>
  )
}
