import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { chmod, mkdtemp, rm } from "node:fs/promises"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Data, Effect, type Scope } from "effect"

/** The processes of a bench; all end with the scope. */

/**
 * How `npm start` runs Node, and what `BENCH_NODE_ARGS` adds, e.g. `--cpu-prof --cpu-prof-dir=…` to see where the time
 * goes.
 */
export const serviceNodeArgs: ReadonlyArray<string> = [
  "--max-semi-space-size=64",
  ...(process.env["BENCH_NODE_ARGS"] ?? "").split(" ").filter((arg) => arg !== "")
]

/** A folder of the bench's own, removed with the scope. */
export const directoryOfItsOwn = Effect.acquireRelease(
  Effect.promise(async () => {
    const directory = await mkdtemp(join(tmpdir(), "connected-payments-bench-"))
    // Root runs the database under another account, which must be able to pass
    await chmod(directory, 0o711)
    return directory
  }),
  (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
)

/** A process of the bench did not do its part. */
export class BenchFailed extends Data.TaggedError("BenchFailed")<{ readonly message: string }> {}

const end = (child: ChildProcess) =>
  Effect.promise(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const ended = once(child, "exit")
      child.kill("SIGTERM")
      setTimeout(() => child.kill("SIGKILL"), 8000).unref()
      await ended
    }
  })

/** A script of this folder's (a URL relative to it) in a process of its own. */
export const startScript = (
  script: string,
  options: {
    readonly args?: ReadonlyArray<string>
    readonly nodeArgs?: ReadonlyArray<string>
    readonly env?: Readonly<Record<string, string>>
  } = {}
): Effect.Effect<{ readonly child: ChildProcess; readonly log: () => string }, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const path = fileURLToPath(new URL(script, import.meta.url))
      const child = spawn(
        process.execPath,
        [...(options.nodeArgs ?? []), "--import", "tsx", path, ...(options.args ?? [])],
        { env: { PATH: process.env["PATH"] ?? "", ...options.env }, stdio: ["ignore", "pipe", "pipe"] }
      )
      let log = ""
      child.stderr.on("data", (chunk: Buffer) => {
        log = (log + chunk.toString()).slice(-4000)
      })
      return { child, log: () => log }
    }),
    ({ child }) => end(child)
  )

/** The first line of a process's output. */
export const firstLine = (started: {
  readonly child: ChildProcess
  readonly log: () => string
}): Effect.Effect<string, BenchFailed> =>
  Effect.async((resume) => {
    let output = ""
    started.child.stdout?.on("data", (chunk: Buffer) => {
      output += chunk.toString()
      if (output.includes("\n")) resume(Effect.succeed(output.slice(0, output.indexOf("\n"))))
    })
    started.child.once("exit", (code) =>
      resume(new BenchFailed({ message: `A process ended with code ${code}: ${started.log()}` }))
    )
  })

/** Microseconds of processor time that a process has used; NaN where the system does not tell it as Linux does. */
export const processorTime = (pid: number): number => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    // After the name, which may hold blanks: the 12th and 13th field, in ticks of 10 ms
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    return (Number(fields[11]) + Number(fields[12])) * 10_000
  } catch {
    return Number.NaN
  }
}

/** Takes traces over OTLP and throws them away. */
export const traceSink: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.async<{ readonly url: string; readonly close: () => void }>((resume) => {
    const server = createServer((request, response) => {
      request.resume().on("end", () => response.writeHead(200, { "content-type": "application/json" }).end("{}"))
    })
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      resume(
        Effect.succeed({
          url: `http://127.0.0.1:${port}`,
          close: () => {
            server.closeAllConnections()
            server.close()
          }
        })
      )
    })
  }),
  ({ close }) => Effect.sync(close)
).pipe(Effect.map(({ url }) => url))
