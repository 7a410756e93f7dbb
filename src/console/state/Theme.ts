import { signal } from "@preact/signals"

/** Light, dark, or as the system says. Kept in this browser. */

export type Theme = "light" | "dark" | "system"

const storageKey = "connected-payments.theme"

const stored = (): Theme => {
  try {
    const value = localStorage.getItem(storageKey)
    return value === "light" || value === "dark" ? value : "system"
  } catch {
    return "system"
  }
}

const show = (theme: Theme): void => {
  if (theme === "system") document.documentElement.removeAttribute("data-theme")
  else document.documentElement.setAttribute("data-theme", theme)
}

export const theme = signal<Theme>(stored())

/** Shows the stored choice; called before the first page is drawn. */
export const applyTheme = (): void => show(theme.value)

export const chooseTheme = (chosen: Theme): void => {
  theme.value = chosen
  show(chosen)
  try {
    if (chosen === "system") localStorage.removeItem(storageKey)
    else localStorage.setItem(storageKey, chosen)
  } catch {
    // A browser that stores nothing keeps the choice until the page is closed
  }
}
