import { defineConfig } from "vitest/config"

/** The engine under faults: real processes that are killed, a database that is stopped. One file at a time: each has the machine to itself. */
export default defineConfig({
  test: {
    include: ["test/faults/**/*.test.ts"],
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 120_000
  }
})
