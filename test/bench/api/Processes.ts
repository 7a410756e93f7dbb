import { type ChildProcess, execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { createServer } from "node:http"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Console, Data, Effect, Schema, type Scope } from "effect"
import { listening } from "../../harness/Listening.ts"
import type { LoadOptions, LoadResult } from "../Load.ts"

/** The master key of the benches' services: what they seed as encrypted is said to be under it. */
export const masterKey = { id: "bench", bytes: Buffer.alloc(32, 7) }

const masterKeys = `${masterKey.id}:${masterKey.bytes.toString("base64")}`

/**
 * How `npm start` and the image run Node for these roles, and what `BENCH_NODE_ARGS` adds, e.g.
 * `--cpu-prof --cpu-prof-dir=…` to see where the time goes.
 */
const nodeArgsOf = (roles: "all" | "api" | "worker"): ReadonlyArray<string> => [
  "--max-semi-space-size=16",
  ...(roles === "worker" ? ["--max-old-space-size=768"] : []),
  ...(process.env["BENCH_NODE_ARGS"] ?? "").split(" ").filter((arg) => arg !== "")
]

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
const builtService: Effect.Effect<URL, BenchFailed> = Effect.runSync(
  Effect.cached(Effect.as(build, new URL("../../../dist/app/main.js", import.meta.url)))
)

/** Starts a script in a process of its own; a built one runs without `tsx`. */
export const startScript = (
  script: URL,
  options: {
    readonly args?: ReadonlyArray<string>
    readonly nodeArgs?: ReadonlyArray<string>
    readonly env?: Readonly<Record<string, string>>
  } = {}
): Effect.Effect<{ readonly child: ChildProcess; readonly log: () => string }, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const path = fileURLToPath(script)
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

/** Starts a server, whose first line says where it listens. */
export const startServer = Effect.fnUntraced(function* (script: URL, options: Parameters<typeof startScript>[1]) {
  const started = yield* startScript(script, options)
  return { baseUrl: yield* firstLine(started), pid: started.child.pid ?? 0 }
})

/** What a service that serves the API says of itself in its data directory. */
const LocalFile = Schema.parseJson(
  Schema.Struct({
    baseUrl: Schema.String,
    organizationId: Schema.String,
    apiKey: Schema.String,
    databaseUrl: Schema.String
  })
)

export type Local = typeof LocalFile.Type

/** Where a service with this data directory listens, and whom it serves. */
export const localOf = (dataDirectory: string) =>
  Effect.flatMap(
    Effect.promise(() => readFile(join(dataDirectory, "local.json"), "utf8")),
    Schema.decode(LocalFile)
  )

/** The service in a process of its own, built and run as in the image. */
export const startBuilt = Effect.fnUntraced(function* (
  roles: "all" | "api" | "worker",
  env: Readonly<Record<string, string>> & { readonly DATA_DIR: string }
) {
  const started = yield* startScript(yield* builtService, {
    nodeArgs: nodeArgsOf(roles),
    env: {
      MODE: "local",
      ROLES: roles,
      HOST: "127.0.0.1",
      PORT: "0",
      MASTER_KEYS: masterKeys,
      RATE_LIMIT_PER_MINUTE: "100000000",
      ...env
    }
  })
  yield* firstLine(started)
  started.child.stdout?.resume()
  const { pid } = started.child
  return pid === undefined ? yield* new BenchFailed({ message: "The service has no process" }) : { pid }
})

/** One request in a hundred is traced, to a collector at this address. */
export const traced = (sink: string) => ({
  OTEL_TRACES_SAMPLER: "traceidratio",
  OTEL_TRACES_SAMPLER_ARG: "0.01",
  OTEL_EXPORTER_OTLP_ENDPOINT: sink
})

/** A script with these options, in a process of its own; answers what its first line says, as JSON. */
export const answerOf = <A>(script: URL, options: unknown) =>
  Effect.gen(function* () {
    const started = yield* startScript(script, { args: [JSON.stringify(options)] })
    // Written by a script of the benches, in the form that it declares
    const result: A = JSON.parse(yield* firstLine(started))
    return result
  }).pipe(Effect.scoped)

export const load = Effect.fnUntraced(function* (name: string, options: LoadOptions) {
  const result = yield* answerOf<LoadResult>(new URL("../Load.ts", import.meta.url), options)
  return result.failures > 0 || result.requests === 0
    ? yield* new BenchFailed({ message: `${name}: ${result.failures} failures: ${result.firstFailure}` })
    : yield* Effect.tap(Effect.succeed({ ...result, rate: result.requests / result.seconds }), ({ rate }) =>
        Console.error(`  ${name}: ${Math.round(rate)}/s`)
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
export const traceSink = Effect.suspend(() => {
  const server = createServer((request, response) => {
    request.resume().on("end", () => response.writeHead(200, { "content-type": "application/json" }).end("{}"))
  })
  return Effect.map(listening(server), (port) => `http://127.0.0.1:${port}`)
})
