import { showTheme, storedTheme } from "./state/StoredTheme.ts"

/**
 * Shows the chosen appearance. A script of its own that the page's head waits for, since the others run only after the
 * page may have been drawn: who has chosen against the system's would see its background for a moment.
 */

showTheme(storedTheme())
