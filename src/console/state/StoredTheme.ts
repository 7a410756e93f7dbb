/**
 * Light, dark, or as the system says: how it is kept in this browser and shown. Without imports: it runs before the first
 * page is drawn.
 */

export type Theme = "light" | "dark" | "system"

const storageKey = "connected-payments.theme"

/** The choice that this browser keeps. */
export const storedTheme = (): Theme => {
  try {
    const value = localStorage.getItem(storageKey)
    return value === "light" || value === "dark" ? value : "system"
  } catch {
    return "system"
  }
}

/** Keeps a choice in this browser. */
export const storeTheme = (theme: Theme): void => {
  try {
    if (theme === "system") localStorage.removeItem(storageKey)
    else localStorage.setItem(storageKey, theme)
  } catch {
    // A browser that stores nothing keeps the choice until the page is closed
  }
}

export const systemIsDark = matchMedia("(prefers-color-scheme: dark)")

/**
 * Shows the page so: the styles know light and dark alone. The browser's own blank page, before there are styles, follows
 * the scheme in the head.
 */
export const showTheme = (theme: Theme): void => {
  const shown = theme === "system" ? (systemIsDark.matches ? "dark" : "light") : theme
  document.documentElement.setAttribute("data-theme", shown)
  document
    .querySelector('meta[name="color-scheme"]')
    ?.setAttribute("content", theme === "system" ? "light dark" : theme)
}
