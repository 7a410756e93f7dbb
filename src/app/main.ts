import { defaultTeardown } from "@effect/platform/Runtime"
import { runMain } from "@effect/platform-node/NodeRuntime"
import { runService } from "./Run.ts"

runMain(runService, {
  // The service sets the exit code of its own failures, even if it then ends as if by a signal
  teardown: (exit, onExit) => defaultTeardown(exit, (code) => onExit(code === 0 ? Number(process.exitCode ?? 0) : code))
})
