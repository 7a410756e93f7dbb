import { relative } from "node:path"
import type { TestModule } from "vitest/node"

/**
 * Names the tests that failed first and passed when they were repeated. On a crowded machine a test may fail for no fault of
 * the code, which must not refuse a change; but it is a defect of the test, so the run says it.
 */
export default class SecondTries {
  onTestRunEnd(modules: ReadonlyArray<TestModule>): void {
    const named = modules.flatMap((module) =>
      [...module.children.allTests("passed")]
        .filter((test) => test.diagnostic()?.flaky === true)
        .map((test) => `  ${relative(process.cwd(), module.moduleId)}: ${test.fullName}`)
    )
    if (named.length === 0) return
    console.warn(["", "Failed at first and passed when repeated; each is a defect of its test:", ...named].join("\n"))
  }
}
