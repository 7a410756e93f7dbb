import { defineConfig } from "vitest/config"
import { Ending } from "./test/harness/Ending.ts"

/** The packages as a release publishes them: packed, installed, compiled against. It takes a minute of processor time. */
export default defineConfig({
  test: {
    include: ["test/package/**/*.test.ts"],
    globalSetup: ["test/harness/globalSetup.ts"],
    // What compiles has the machine to itself
    fileParallelism: false,
    reporters: ["default", new Ending()],
    testTimeout: 120_000,
    hookTimeout: 120_000
  }
})
