import { defineConfig } from "vitest/config"
import { Ending } from "./test/harness/Ending.ts"
import { SlowFirst } from "./test/harness/SlowFirst.ts"

/** The engine under faults: real processes that are killed, a database that is stopped. Three files at a time: they mostly wait for leases and servers. */
export default defineConfig({
  test: {
    include: ["test/faults/**/*.test.ts"],
    globalSetup: ["test/harness/globalSetup.ts"],
    maxWorkers: 3,
    minWorkers: 3,
    // A worker's files share what it has loaded
    isolate: false,
    setupFiles: ["test/harness/freshTestMethods.ts"],
    sequence: { sequencer: SlowFirst },
    reporters: ["default", new Ending()],
    testTimeout: 400_000,
    hookTimeout: 120_000
  }
})
