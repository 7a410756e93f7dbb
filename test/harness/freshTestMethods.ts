import { it, makeMethods } from "@effect/vitest"

/**
 * Runs before each test file. `layer` puts the methods of its suite onto the one `it` that all files of a worker share,
 * and leaves them there: an `it.effect` of a later file would run on that suite's layer, which is closed by then, and
 * without the test clock.
 */
makeMethods(it)
