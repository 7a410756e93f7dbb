import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/harness/globalSetup.ts"],
    exclude: ["test/bench/**", "test/faults/**"],
    testTimeout: 30_000,
    hookTimeout: 60_000
  }
})
