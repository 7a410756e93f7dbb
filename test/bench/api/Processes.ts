import { type ChildProcess, execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { chmod, mkdtemp, rm } from "node:fs/promises"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Data, Effect, type Scope } from "effect"

/** The processes of a bench; all end with the scope. */

/** The master key of the benches' services: what they seed as encrypted is said to be under it. */
export const masterKey = { id: "bench", bytes: Buffer.alloc(32, 7) }

/** That key as the setting `MASTER_KEYS`. */
export const masterKeys = `${masterKey.id}:${masterKey.bytes.toString("base64")}`

/**
 * How `npm start` and the image run Node for these roles, and what `BENCH_NODE_ARGS` adds, e.g.
 * `--cpu-prof --cpu-prof-dir=…` to see where the time goes.
 */
export const nodeArgsOf = (roles: "all" | "api" | "worker"): ReadonlyArray<string> => [
  ...(roles === "worker" ? ["--max-semi-space-size=16", "--max-old-space-size=768"] : ["--max-semi-space-size=64"]),
  ...(process.env["BENCH_NODE_ARGS"] ?? "").split(" ").filter((arg) => arg !== "")
]

/** See `nodeArgsOf`: a process that serves the API. */
export const serviceNodeArgs = nodeArgsOf("api")

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

const build = Effect.tryPromise({
  try: () =>
    promisify(execFile)("npm", ["run", "build"], { cwd: fileURLToPath(new URL("../../../", import.meta.url)) }),
  catch: (cause) => new BenchFailed({ message: `The service can't be built: ${String(cause)}` })
})

/** Builds the service, as its image does, once for all that a run starts; answers the built main script, for `startScript`. */
export const builtService: Effect.Effect<string, BenchFailed> = Effect.runSync(
  Effect.cached(Effect.as(build, "../../../dist/main.js"))
)

/** A script (a URL relative to this folder) in a process of its own; what is built runs without `tsx`. */
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
        [
          ...(options.nodeArgs ?? []),
          ...(path.endsWith(".js") ? [] : ["--import", "tsx"]),
          path,
          ...(options.args ?? [])
        ],
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
