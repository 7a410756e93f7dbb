import { showTheme, storedTheme } from "./state/StoredTheme.ts"

/**
 * Applies the chosen appearance. A separate script that the page's head waits for, since the others may run only after
 * the first paint: anyone whose choice differs from the system's would see the wrong background for a moment.
 */

showTheme(storedTheme())
