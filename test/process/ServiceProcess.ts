import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { readFile } from "node:fs/promises"
import { Agent, request } from "node:http"
import { join } from "node:path"
import { Effect, Option } from "effect"
import { destroyEmbeddedPostgres } from "../../src/platform/storage/embedded/EmbeddedPostgres.ts"
import { eventually } from "../harness/Eventually.ts"
import { outputOf } from "../harness/Output.ts"
import { program } from "../harness/Program.ts"
import { placeCluster } from "../harness/TestDatabase.ts"
import { temporaryDirectory } from "../platform/storage/fixtures/temporaryDirectory.ts"

/** What a local start writes for scripts. */
export interface LocalFile {
  readonly baseUrl: string
  readonly emulatorUrl: string
  readonly organizationId: string
  readonly apiKey: string
  readonly ownerEmail: string
  readonly databaseUrl: string
}

export interface ServiceProcess {
  readonly pid: number
  readonly child: ChildProcess
  readonly output: { stdout: string; stderr: string }
  /** Completes with the exit code, or the signal's name. */
  readonly ended: Promise<number | NodeJS.Signals | null>
}

const repository = new URL("../../", import.meta.url).pathname

/** The environment of a test's process: nothing of ours but what it is told. */
const baseEnvironment = Object.fromEntries(
  ["PATH", "HOME", "TMPDIR", "USER"].flatMap((name) => {
    const value = process.env[name]
    return value === undefined ? [] : [[name, value]]
  })
)

/** Whether a process is there and is not just waiting to be reaped. */
export const isAlive = (pid: number): Effect.Effect<boolean> =>
  Effect.promise(async () => {
    try {
      process.kill(pid, 0)
    } catch {
      return false
    }
    return !/\) Z /.test(await readFile(`/proc/${pid}/stat`, "utf8").catch(() => ""))
  })

/**
 * An empty data directory of one test's own; what it will hold, a left-over database server included, is removed at the
 * end.
 */
export const emptyDataDirectory = Effect.acquireRelease(temporaryDirectory, (directory) =>
  Effect.orDie(destroyEmbeddedPostgres(join(directory, "postgres")))
)

/** A data directory with a database that an earlier start has left: quicker to start on than an empty one. */
export const dataDirectory = Effect.tap(emptyDataDirectory, (directory) => placeCluster(join(directory, "postgres")))

const signalGroup = (pid: number, signal: NodeJS.Signals) => {
  try {
    process.kill(-pid, signal)
  } catch {
    // The group is gone: what the signal was for
  }
}

/** Starts a process of the service; its whole group is killed when the scope closes, if it still runs. */
export const spawnService = (
  directory: string,
  settings: Readonly<Record<string, string>> = {},
  command: readonly [string, ...ReadonlyArray<string>] = [process.execPath, ...program("src/app/main.ts")]
) =>
  Effect.acquireRelease(
    Effect.sync((): ServiceProcess => {
      const [file, ...args] = command
      const child = spawn(file, args, {
        cwd: repository,
        // A process group of its own, like that of a command in a terminal
        detached: true,
        env: {
          ...baseEnvironment,
          MODE: "local",
          PORT: "0",
          DATA_DIR: directory,
          DELIVERY_TIMEOUT: "30 seconds",
          DELIVERY_LEASE_MARGIN: "1 second",
          DELIVERY_POLL_INTERVAL: "100 millis",
          ...settings
        },
        stdio: ["ignore", "pipe", "pipe"]
      })
      const output = outputOf(child)
      const ended = once(child, "close").then(
        ([code, signal]: Array<number | NodeJS.Signals | null>) => code ?? signal ?? null
      )
      return { pid: child.pid ?? Number.NaN, child, output, ended }
    }),
    ({ ended, pid }) =>
      Effect.promise(async () => {
        signalGroup(pid, "SIGKILL")
        await ended
      })
  )

/** Sends a signal, to the process or to its whole group, and waits for its end; fails where that does not come. */
export const stop = (service: ServiceProcess, signal: NodeJS.Signals, to: "process" | "group" = "process") =>
  Effect.promise(async () => {
    if (to === "group") signalGroup(service.pid, signal)
    else service.child.kill(signal)
    return { code: await service.ended }
  }).pipe(
    Effect.timeoutFail({
      duration: "50 seconds",
      onTimeout: () => new Error(`It goes on 50 seconds after ${signal} to the ${to}`)
    })
  )

/** Whether any process of the group that it was started in is left. */
export const groupIsAlive = ({ pid }: ServiceProcess): boolean => {
  try {
    process.kill(-pid, 0)
    return true
  } catch {
    return false
  }
}

const readLocalFile = (directory: string): Effect.Effect<Option.Option<LocalFile>> =>
  Effect.promise(() => readFile(join(directory, "local.json"), "utf8").catch(() => undefined)).pipe(
    Effect.map((text) => Option.map(Option.fromNullable(text), (json): LocalFile => JSON.parse(json)))
  )

/** On a machine that does much else, a start from the sources takes more than a minute. */
export const startLimitMillis = 200_000

/** Starts a process and waits until it serves: its `local.json` names an address that answers. */
export const startService = Effect.fnUntraced(function* (
  directory: string,
  settings: Readonly<Record<string, string>> = {},
  command?: readonly [string, ...ReadonlyArray<string>]
) {
  const service = yield* spawnService(directory, settings, command)
  const local = yield* eventually(
    "the service's start",
    Effect.gen(function* () {
      if (service.child.exitCode !== null) return yield* Effect.dieMessage(`It ended: ${service.output.stderr}`)
      // The file of an earlier run stays; the welcome is of this one
      return service.output.stdout.includes("is ready") ? yield* readLocalFile(directory) : Option.none()
    }),
    startLimitMillis
  )
  return { ...service, local }
})

/** The process of the embedded database server, as its own status file names it. */
export const databasePid = (directory: string): Effect.Effect<number> =>
  Effect.promise(async () => {
    const home = await readFile(join(directory, "postgres", "location"), "utf8").catch(() =>
      join(directory, "postgres")
    )
    return Number((await readFile(join(home.trim(), "cluster", "postmaster.pid"), "utf8")).split("\n")[0])
  })

export const keptConnection = ({ baseUrl }: LocalFile) =>
  Effect.acquireRelease(
    Effect.async<Agent>((resume) => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      request(`${baseUrl}/health/live`, { agent }, (response) => {
        response.resume().on("end", () => resume(Effect.succeed(agent)))
      }).end()
    }),
    (agent) => Effect.sync(() => agent.destroy())
  )
