import { relative } from "node:path"
import { Array as Arrays } from "effect"
import type { Reporter, TestModule } from "vitest/node"
import { propertySeed } from "./sameProperties.ts"

const secondsOf = (module: TestModule): number => {
  const { collectDuration, duration } = module.diagnostic()
  return (collectDuration + duration) / 1000
}

const plainName = (path: string): string => relative("test", relative(process.cwd(), path)).replace(/\.test\.ts$/, "")

/** Why a test was skipped: what its name, or its suite's, says in brackets. */
const reasonOf = (name: string): string =>
  /\(skipped:? ([^)]*)\)/.exec(name)?.[1] ?? `${name} (its name doesn't say why)`

/** The last five lines of a run: its ten slowest files, what was skipped and why, and the seed of its properties. */
export class Ending implements Reporter {
  async onTestRunEnd(modules: ReadonlyArray<TestModule>): Promise<void> {
    const slowest = modules
      .map((module) => [secondsOf(module), plainName(module.moduleId)] as const)
      .toSorted(([a], [b]) => b - a)
      .slice(0, 10)
      .map(([seconds, name]) => `${name} ${seconds.toFixed(1)} s`)
    const skipped = modules.flatMap((module) =>
      [...module.children.allTests("skipped")].map(({ fullName }) => fullName)
    )
    const reasons = Object.entries(Arrays.groupBy(skipped, reasonOf))
    const lines = [
      `Slowest files: ${slowest.slice(0, 5).join(", ")}`,
      `               ${slowest.slice(5).join(", ")}`,
      `Skipped tests: ${skipped.length}`,
      `               ${reasons.map(([reason, names]) => `${names.length}: ${reason}`).join("; ") || "-"}`,
      `Property seed: ${propertySeed} (PROPERTY_SEED sets another one)`
    ]
    // After the summary, which the default reporter writes at the same time
    await new Promise((resolve) => setImmediate(resolve))
    console.log(lines.join("\n"))
  }
}
