import { defaultTeardown } from "@effect/platform/Runtime"
import { runMain } from "@effect/platform-node/NodeRuntime"
import { runService } from "./Run.ts"

runMain(runService, {
  // The service sets the code of its own failures, also if it then ends as by a signal
  teardown: (exit, onExit) => defaultTeardown(exit, (code) => onExit(code === 0 ? Number(process.exitCode ?? 0) : code))
})
