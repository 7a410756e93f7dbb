import { defineConfig } from "vitest/config"
import { Ending } from "./test/harness/Ending.ts"
import { SlowFirst } from "./test/harness/SlowFirst.ts"

/** The packages as a release publishes them: packed, installed, compiled against. It takes a minute of processor time. */
export default defineConfig({
  test: {
    include: ["test/package/**/*.test.ts"],
    globalSetup: ["test/harness/globalSetup.ts"],
    maxWorkers: 2,
    minWorkers: 2,
    sequence: { sequencer: SlowFirst },
    reporters: ["default", new Ending()],
    // What compiles shares the machine
    testTimeout: 400_000,
    hookTimeout: 400_000
  }
})
