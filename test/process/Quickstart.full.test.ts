import { readdir } from "node:fs/promises"
import { Effect } from "effect"
import { eventuallyTrue } from "../harness/Eventually.ts"
import { expect, it } from "../harness/Tests.ts"
import { emptyDataDirectory, groupIsAlive, spawnService } from "./ServiceProcess.ts"

const quickstart = [process.execPath, "--import", "tsx", "src/app/cli/quickstart.ts"] as const

it.scopedLive("the quickstart ends the service that it has started when it is told to stop", function* () {
  const directory = yield* emptyDataDirectory
  const process = yield* spawnService(directory, { TMPDIR: directory }, quickstart)
  yield* eventuallyTrue("the service's start", () => process.output.stdout.includes("service started"), 200_000)
  process.child.kill("SIGTERM")
  expect(yield* Effect.promise(() => process.ended), process.output.stderr).toBe(130)
  // The loader's own helper may take a moment more
  yield* eventuallyTrue("the end of what it has started", () => !groupIsAlive(process))
  const left = yield* Effect.promise(() => readdir(directory))
  expect(left.filter((name) => name.startsWith("connected-payments"))).toEqual([])
})
