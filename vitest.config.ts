import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/harness/globalSetup.ts"],
    exclude: ["test/bench/**", "test/faults/**"],
    // Much of the time is spent waiting for processes, sockets and the database
    maxWorkers: 2,
    minWorkers: 1,
    testTimeout: 30_000,
    hookTimeout: 60_000
  }
})
