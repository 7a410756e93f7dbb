import { NodeRuntime } from "@effect/platform-node"
import { runService } from "./Run.ts"

NodeRuntime.runMain(runService)
