import { sep } from "node:path"
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** Folders whose tests start processes, the slowest first. */
const slow = ["process", "cli", "storage", "mcp"]

const rank = ({ moduleId }: TestSpecification): number => {
  const at = slow.findIndex((folder) => moduleId.includes(`${sep}test${sep}${folder}${sep}`))
  return at === -1 ? slow.length : at
}

/**
 * Files that start processes come first, whether or not an earlier run's times are known: no worker is left with a long
 * one at the end.
 */
export class SlowFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}
