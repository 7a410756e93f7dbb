import { join } from "node:path"
import { inject } from "vitest"

/**
 * The arguments with which `node` runs a program: the run's bundle of it, which starts in a fraction of the time that
 * the sources take.
 *
 * @param source its source below the repository, one of those that `buildInto` bundles, such as `src/app/main.ts`
 */
export const program = (source: string): readonly [string] => [
  join(inject("buildDirectory"), source.replace(/\.ts$/, ".js"))
]
