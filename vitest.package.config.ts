import { defineConfig } from "vitest/config"
import SecondTries from "./test/harness/SecondTries.ts"

/** The packages as a release publishes them: packed, installed, compiled against. It takes a minute of processor time. */
export default defineConfig({
  test: {
    include: ["test/package/**/*.test.ts"],
    globalSetup: ["test/harness/globalSetup.ts"],
    // What compiles has the machine to itself
    fileParallelism: false,
    retry: 1,
    reporters: ["default", new SecondTries()],
    testTimeout: 120_000,
    hookTimeout: 120_000
  }
})
