import { defineConfig } from "vitest/config"
import { SlowFirst } from "./test/harness/SlowFirst.ts"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/harness/globalSetup.ts"],
    exclude: ["test/bench/**", "test/faults/**"],
    // Much of the time is spent waiting for processes, sockets and the database
    maxWorkers: 3,
    minWorkers: 2,
    // To load Effect and the service anew for each file would take a third of the run: a worker's files share them
    isolate: false,
    setupFiles: ["test/harness/freshTestMethods.ts"],
    sequence: { sequencer: SlowFirst },
    // Bounds for a busy machine; on a quiet one no test comes near
    testTimeout: 60_000,
    hookTimeout: 120_000
  }
})
