import { readdirSync } from "node:fs"
import { Effect } from "effect"
import { eventuallyTrue } from "../harness/Eventually.ts"
import { expect, it } from "../harness/Tests.ts"
import { emptyDataDirectory, groupIsAlive, spawnService } from "./ServiceProcess.ts"

const quickstart = [process.execPath, "--import", "tsx", "src/app/cli/quickstart.ts"] as const

it.scopedLive.each(["SIGTERM", "SIGKILL"] as const)(
  "the quickstart leaves no service and no directory after %s",
  function* (signal) {
    const directory = yield* emptyDataDirectory
    const process = yield* spawnService(directory, { TMPDIR: directory }, quickstart)
    yield* eventuallyTrue("the service's start", () => process.output.stdout.includes("service started"), 200_000)
    process.child.kill(signal)
    // The loader's own helper may take a moment more
    yield* eventuallyTrue("the end of what it has started", () => !groupIsAlive(process), 60_000)
    expect(yield* Effect.promise(() => process.ended), process.output.stderr).toBe(signal === "SIGTERM" ? 130 : signal)
    yield* eventuallyTrue("the removal", () =>
      readdirSync(directory).every((name) => !name.startsWith("connected-payments"))
    )
  }
)
