import { chmod, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Redacted } from "effect"
import { temporaryDirectory } from "../platform/storage/fixtures/temporaryDirectory.ts"
import { answering } from "./Connection.ts"
import { freePort } from "./FreePort.ts"
import { installed, startInstalled, unprivileged } from "./Installed.ts"

const executable = installed(["/usr/sbin/pgbouncer", "pgbouncer"], ["--version"])

/** Whether PgBouncer is installed; tests that need it are skipped without it. */
export const hasPgBouncer = executable !== undefined

/** For the names of tests that need it. */
export const pgBouncerNote = hasPgBouncer ? "" : " (skipped: PgBouncer is not installed)"

/**
 * Starts PgBouncer in front of a database; it ends with the scope.
 *
 * @param settings lines of its configuration, such as `pool_mode`
 */
export const startPgBouncer = (
  database: Redacted.Redacted<string>,
  settings: Readonly<Record<string, string | number>>
) =>
  Effect.gen(function* () {
    const direct = new URL(Redacted.value(database))
    const directory = yield* temporaryDirectory
    const port = yield* freePort
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
    const log = yield* startInstalled(executable ?? "pgbouncer", [join(directory, "pgbouncer.ini")], unprivileged)
    const through = new URL(direct.href)
    through.port = String(port)
    yield* answering("PgBouncer", through.href, log)
    return { url: through.href, log }
  })
