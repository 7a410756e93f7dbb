import { defineConfig } from "vitest/config"
import { Ending } from "./test/harness/Ending.ts"
import { SlowFirst } from "./test/harness/SlowFirst.ts"

export default defineConfig({
  // The name by which the examples import the package
  resolve: {
    alias: [{ find: /^connected-payments$/, replacement: new URL("src/app/index.ts", import.meta.url).pathname }]
  },
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/harness/globalSetupInMemory.ts"],
    // Each has a command of its own: test:full, bench, test:faults, test:package, test:servers
    exclude: ["test/**/*.full.test.ts", "test/bench/**", "test/faults/**", "test/package/**", "test/servers/**"],
    // Some of the time is spent waiting for processes, sockets and the database: a worker more than a small machine has
    // processors. Each further one loads the service, and starts those that suites share, once more
    maxWorkers: 3,
    // At the end of a run the pool ends idle workers down to this number. With more than one to end it ends one of them
    // twice, the second time in the midst of the first, and the run fails with "Terminating worker thread"
    minWorkers: 3,
    // To load Effect and the service anew for each file would take a third of the run: a worker's files share them
    isolate: false,
    // As the service's own start: what a request leaves behind is collected young, less often in a larger space
    poolOptions: { forks: { execArgv: ["--max-semi-space-size=64"] } },
    setupFiles: [
      "test/harness/endWithTheRun.ts",
      "test/harness/ownTemporaryDirectory.ts",
      "test/harness/freshTestMethods.ts",
      "test/harness/sameProperties.ts"
    ],
    sequence: { sequencer: SlowFirst },
    reporters: ["default", new Ending()],
    // Bounds for a busy machine; on a quiet one no test comes near
    testTimeout: 240_000,
    hookTimeout: 120_000
  }
})
