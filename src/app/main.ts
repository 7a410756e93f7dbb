import { showStep } from "./local/Progress.ts"

// Before the service's modules, which take seconds to load on a slow machine
if ((process.env["MODE"] ?? "local") === "local") showStep("Starting connected-payments")

const [{ defaultTeardown }, { runMain }, { runService }] = await Promise.all([
  import("@effect/platform/Runtime"),
  import("@effect/platform-node/NodeRuntime"),
  import("./Run.ts")
])

runMain(runService, {
  // The service sets the exit code of its own failures, even if it then ends as if by a signal
  teardown: (exit, onExit) => defaultTeardown(exit, (code) => onExit(code === 0 ? Number(process.exitCode ?? 0) : code))
})
