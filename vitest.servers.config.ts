import { defineConfig } from "vitest/config"

/** The engine's attempts to real servers, as far as this machine has them or can install them. It records what they send. */
export default defineConfig({
  test: {
    include: ["test/servers/**/*.test.ts"],
    setupFiles: ["test/harness/freshTestMethods.ts"],
    testTimeout: 60_000
  }
})
