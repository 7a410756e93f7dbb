import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { Effect } from "effect"
import { commandLine } from "../../../src/platform/storage/embedded/EmbeddedHome.ts"
import {
  destroyEmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres
} from "../../../src/platform/storage/embedded/EmbeddedPostgres.ts"

import { program } from "../../harness/Program.ts"
import { placeCluster } from "../../harness/TestDatabase.ts"
import { temporaryDirectory } from "./fixtures/temporaryDirectory.ts"

/** A directory for one embedded PostgreSQL, not there yet; removed with whatever still runs in it. */
export const emptyDirectory = Effect.flatMap(temporaryDirectory, (directory) =>
  Effect.acquireRelease(Effect.succeed(join(directory, "data")), (data) => Effect.orDie(destroyEmbeddedPostgres(data)))
)

/** A directory with the cluster that an earlier start made: quicker to start on than an empty one. */
export const dataDirectory = Effect.tap(emptyDirectory, placeCluster)

export const start = (options: EmbeddedPostgresOptions) => startEmbeddedPostgres({ durable: false, ...options })

export const postmasterOf = (directory: string) =>
  Effect.promise(async () =>
    Number((await readFile(join(directory, "cluster", "postmaster.pid"), "utf8")).split("\n")[0])
  )

export const isRunning = (pid: number) => Effect.map(commandLine(pid), (line) => line !== "")

export const startHolder = (directory: string, kind: "lasting" | "temporary" = "lasting") =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const script = program("test/platform/storage/fixtures/holdCluster.ts")
      // A process group of its own, like that of a command in a terminal.
      const child = spawn(process.execPath, [...script, directory, kind], {
        detached: true,
        stdio: ["ignore", "pipe", "inherit"]
      })
      const exited = once(child, "exit")
      const lines: Array<string> = []
      const reader = createInterface({ input: child.stdout })
      const ready = new Promise<string>((resolve) =>
        reader.on("line", (line) => {
          lines.push(line)
          if (line.startsWith("ready ")) resolve(line.slice("ready ".length))
        })
      )
      const url = await Promise.race([ready, exited.then(() => Promise.reject(new Error(`holder ended: ${lines}`)))])
      return { pid: child.pid ?? Number.NaN, url, lines, exited }
    }),
    ({ pid, exited }) =>
      Effect.promise(async () => {
        try {
          process.kill(pid, "SIGKILL")
        } catch {
          return
        }
        await exited
      })
  )
