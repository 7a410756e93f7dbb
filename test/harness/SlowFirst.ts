import { BaseSequencer, type TestSpecification } from "vitest/node"

/** Files and folders whose tests compile or start processes, the slowest first. */
const slow = [
  "test/package/Package.test.ts",
  "test/process/Shutdown.test.ts",
  "test/storage/EmbeddedPostgres.test.ts",
  "test/process/",
  "test/package/",
  "test/cli/",
  "test/storage/",
  "test/http/Browser.test.ts",
  "test/docs/",
  "test/mcp/"
]

const rank = ({ moduleId }: TestSpecification): number => {
  const at = slow.findIndex((path) => moduleId.includes(`/${path}`))
  return at === -1 ? slow.length : at
}

/**
 * Slow files come first, whether or not an earlier run's times are known: no worker is left with a long
 * one at the end.
 */
export class SlowFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}
