import { runMain } from "@effect/platform-node/NodeRuntime"
import { runService } from "./Run.ts"

runMain(runService)
