import { showTheme, storedTheme } from "./state/StoredTheme.ts"

/** A separate script that the head waits for: the others may run only after the first paint. */

showTheme(storedTheme())
