import { spawnSync } from "node:child_process"
import { chown } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { temporaryDirectory } from "../platform/storage/fixtures/temporaryDirectory.ts"
import { answering } from "./Connection.ts"
import { freePort } from "./FreePort.ts"
import { installed, startInstalled, unprivileged } from "./Installed.ts"

const programs = "/usr/lib/postgresql/15/bin"

/** Whether the oldest PostgreSQL that is supported is installed, as Debian does it, and a note for names of tests that need it. */
export const hasOldestPostgres = installed([join(programs, "postgres")], ["--version"]) !== undefined
export const oldestPostgresNote = hasOldestPostgres ? "" : " (skipped: PostgreSQL 15 is not installed)"

/** Starts it on a new cluster; it ends with the scope. Returns its superuser's URL. */
export const startOldestPostgres = Effect.gen(function* () {
  const [directory, port] = [yield* temporaryDirectory, yield* freePort]
  const cluster = join(directory, "cluster")
  yield* Effect.promise(() => chown(directory, unprivileged.uid, unprivileged.gid))
  const made = spawnSync(join(programs, "initdb"), ["-D", cluster, "-U", "postgres", "-A", "trust", "-E", "UTF8"], {
    ...unprivileged,
    encoding: "utf8"
  })
  if (made.status !== 0) return yield* Effect.dieMessage(made.stderr)
  const settings = { listen_addresses: "127.0.0.1", port, unix_socket_directories: "", fsync: "off" }
  const log = yield* startInstalled(
    join(programs, "postgres"),
    ["-D", cluster, ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`])],
    unprivileged
  )
  const url = `postgresql://postgres@127.0.0.1:${port}/postgres`
  return yield* Effect.as(answering("PostgreSQL 15", url, log), url)
})
