import { defineConfig } from "vitest/config"
import { Ending } from "./test/harness/Ending.ts"

/** The engine under faults: real processes that are killed, a database that is stopped. One file at a time: each has the machine to itself. */
export default defineConfig({
  test: {
    include: ["test/faults/**/*.test.ts"],
    globalSetup: ["test/harness/globalSetup.ts"],
    fileParallelism: false,
    // They share one worker, and what it has loaded
    isolate: false,
    setupFiles: ["test/harness/freshTestMethods.ts"],
    reporters: ["default", new Ending()],
    testTimeout: 400_000,
    hookTimeout: 120_000
  }
})
