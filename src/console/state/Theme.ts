import { signal } from "@preact/signals"
import { showTheme, storedTheme, storeTheme, systemIsDark, type Theme } from "./StoredTheme.ts"

export type { Theme } from "./StoredTheme.ts"

/** The chosen appearance, already applied by a script in the page's head. */
export const theme = signal<Theme>(storedTheme())

systemIsDark.addEventListener("change", () => showTheme(theme.value))

export const chooseTheme = (chosen: Theme): void => {
  theme.value = chosen
  showTheme(chosen)
  storeTheme(chosen)
}
