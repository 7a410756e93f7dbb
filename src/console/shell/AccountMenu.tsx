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

export const AccountMenu = ({ onNavigate }: { readonly onNavigate?: () => void }) => {
  const { organization, person } = useSession()
  const { path } = useWorkspace()
  const [open, setOpen] = useState(false)
  const id = useId()
  const root = useRef<HTMLDivElement>(null)
  const button = useRef<HTMLButtonElement>(null)
  useEffect(() => {
    if (!open) return
    const onPointer = (event: Event) => {
      if (event.target instanceof Node && root.current?.contains(event.target) !== true) setOpen(false)
    }
    document.addEventListener("pointerdown", onPointer)
    return () => document.removeEventListener("pointerdown", onPointer)
  }, [open])
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: Escape and leaving close what the button opened
    <div
      class="account-menu"
      ref={root}
      onKeyDown={(event) => {
        if (event.key === "Escape" && open) {
          event.stopPropagation()
          setOpen(false)
          button.current?.focus()
        }
      }}
      onFocusOut={(event) => {
        if (event.relatedTarget instanceof Node && root.current?.contains(event.relatedTarget) !== true) setOpen(false)
      }}
    >
      {open ? (
        <div class="account-panel" id={id}>
          <ThemeSwitch />
          <ul>
            <li>
              <Link
                href={path("/sessions")}
                onClick={() => {
                  setOpen(false)
                  onNavigate?.()
                }}
              >
                <Icon name="system" />
                Your sessions
              </Link>
            </li>
            <li>
              <button
                type="button"
                onClick={() => {
                  signOut(false).catch((failure: unknown) => toast(toApiError(failure).message, "problem"))
                }}
              >
                <Icon name="out" />
                Sign out
              </button>
            </li>
          </ul>
        </div>
      ) : null}
      <button
        type="button"
        class="account-button"
        ref={button}
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        onClick={() => setOpen(!open)}
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
