import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Redacted, type Scope } from "effect"
import { Client } from "pg"
import { eventually, type NeverHappened } from "./Eventually.ts"

const executable = ["/usr/sbin/pgbouncer", "pgbouncer"].find(
  (file) => spawnSync(file, ["--version"], { stdio: "ignore" }).status === 0
)

/** Whether PgBouncer is installed; tests that need it are skipped without it. */
export const hasPgBouncer = executable !== undefined

/** For the names of tests that need it. */
export const pgBouncerNote = hasPgBouncer ? "" : " (skipped: PgBouncer is not installed)"

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  server.close()
  return typeof address === "object" && address !== null ? address.port : 0
}

interface PgBouncer {
  /** The database's URL through it. */
  readonly url: string
  /** What it has logged. */
  readonly log: () => string
}

/**
 * Starts PgBouncer in front of a database; it ends with the scope.
 *
 * @param settings lines of its configuration, such as `pool_mode`
 */
export const startPgBouncer = (
  database: Redacted.Redacted<string>,
  settings: Readonly<Record<string, string | number>>
): Effect.Effect<PgBouncer, NeverHappened, Scope.Scope> =>
  Effect.gen(function* () {
    const direct = new URL(Redacted.value(database))
    const directory = yield* Effect.acquireRelease(
      Effect.promise(() => mkdtemp(join(tmpdir(), "connected-payments-pgbouncer-"))),
      (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
    )
    const port = yield* Effect.promise(freePort)
    const lines = {
      listen_addr: "127.0.0.1",
      listen_port: port,
      unix_socket_dir: "",
      auth_type: "scram-sha-256",
      auth_file: join(directory, "users.txt"),
      ...settings
    }
    yield* Effect.promise(async () => {
      await writeFile(
        join(directory, "pgbouncer.ini"),
        [
          "[databases]",
          `* = host=${direct.hostname} port=${direct.port}`,
          "[pgbouncer]",
          ...Object.entries(lines).map(([name, value]) => `${name} = ${value}`),
          ""
        ].join("\n")
      )
      const [user, password] = [direct.username, direct.password].map(decodeURIComponent)
      await writeFile(join(directory, "users.txt"), `"${user}" "${password}"\n`)
      // It refuses to run as root, so it has to read these as somebody else
      await chmod(directory, 0o755)
    })
    let log = ""
    const asRoot = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        const child = spawn(executable ?? "pgbouncer", [join(directory, "pgbouncer.ini")], {
          ...asRoot,
          stdio: ["ignore", "pipe", "pipe"]
        })
        for (const stream of [child.stdout, child.stderr]) {
          stream.on("data", (chunk: Buffer) => {
            log += chunk.toString()
          })
        }
        return child
      }),
      (child) =>
        Effect.promise(async () => {
          if (child.exitCode !== null || child.signalCode !== null) return
          const ended = once(child, "exit")
          child.kill("SIGKILL")
          await ended
        })
    )
    const through = new URL(direct.href)
    through.port = String(port)
    yield* eventually(
      "PgBouncer answers",
      Effect.option(
        Effect.tryPromise(async () => {
          const client = new Client({ connectionString: through.href })
          client.on("error", () => {})
          await client.connect()
          await client.end()
        })
      ),
      20_000
    ).pipe(Effect.tapErrorCause(() => Effect.sync(() => process.stderr.write(log))))
    return { url: through.href, log: () => log }
  })
