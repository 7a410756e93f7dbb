import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { inject } from "vitest"

/**
 * The arguments with which `node` runs a program: the run's bundle of it, which starts in a fraction of the time that
 * the sources take, or the sources if a run makes no bundles.
 *
 * @param source its source below the repository, one of those that `buildInto` bundles, such as `src/main.ts`
 */
export const program = (source: string): readonly [string, ...ReadonlyArray<string>] => {
  const directory = inject("buildDirectory")
  return directory === undefined
    ? ["--import", "tsx", fileURLToPath(new URL(`../../${source}`, import.meta.url))]
    : [join(directory, source.replace(/\.ts$/, ".js"))]
}
