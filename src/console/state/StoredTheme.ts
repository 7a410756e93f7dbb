/** The appearance, as stored in this browser. Imports nothing, since it runs before the first paint. */

export type Theme = "light" | "dark" | "system"

const storageKey = "connected-payments.theme"

/** The stored choice; "system" without one. */
export const storedTheme = (): Theme => {
  try {
    const value = localStorage.getItem(storageKey)
    return value === "light" || value === "dark" ? value : "system"
  } catch {
    return "system"
  }
}

export const storeTheme = (theme: Theme): void => {
  try {
    if (theme === "system") localStorage.removeItem(storageKey)
    else localStorage.setItem(storageKey, theme)
  } catch {
    // Without storage, the choice lasts until the page is closed
  }
}

export const systemIsDark = matchMedia("(prefers-color-scheme: dark)")

/** The browser's own blank page, before the styles load, follows the `color-scheme` in the head. */
export const showTheme = (theme: Theme): void => {
  const shown = theme === "system" ? (systemIsDark.matches ? "dark" : "light") : theme
  document.documentElement.setAttribute("data-theme", shown)
  document
    .querySelector('meta[name="color-scheme"]')
    ?.setAttribute("content", theme === "system" ? "light dark" : theme)
}
