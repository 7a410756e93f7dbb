import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { chmod, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises"
import { connect, createServer } from "node:net"
import { networkInterfaces } from "node:os"
import { join } from "node:path"
import { Cause, Context, Effect, Exit, Layer, Option, Redacted, Scope } from "effect"
import { Client } from "pg"
import { describe, vi } from "vitest"
import { systemDirectory } from "../../../src/platform/storage/embedded/EmbeddedHome.ts"
import {
  destroyEmbeddedPostgres,
  type EmbeddedPostgres,
  startEmbeddedPostgres
} from "../../../src/platform/storage/embedded/EmbeddedPostgres.ts"
import { ask } from "../../harness/Connection.ts"
import { eventually, eventuallyTrue } from "../../harness/Eventually.ts"
import { expect, it, layer } from "../../harness/Tests.ts"
import { dataDirectory, emptyDirectory, isRunning, postmasterOf, start, startHolder } from "./EmbeddedHarness.ts"
import { temporaryDirectory } from "./fixtures/temporaryDirectory.ts"

const isRoot = process.getuid?.() === 0

const accepts = (host: string, port: number) =>
  Effect.async<boolean>((resume) => {
    const socket = connect({ host, port, timeout: 2_000 })
    const answer = (accepted: boolean) => {
      socket.destroy()
      resume(Effect.succeed(accepted))
    }
    socket.once("connect", () => answer(true))
    socket.once("error", () => answer(false))
    socket.once("timeout", () => answer(false))
  })

/** A server on a directory that was empty, with the settings of a start that says nothing of them. */
class Fresh extends Context.Tag("test/Fresh")<Fresh, EmbeddedPostgres & { readonly directory: string }>() {
  static readonly layer = Layer.scoped(
    Fresh,
    Effect.gen(function* () {
      const directory = yield* emptyDirectory
      return { directory, ...(yield* startEmbeddedPostgres({ directory })) }
    })
  )
}

layer(Fresh.layer)("the first start", (it) => {
  it.scoped("offers a database of its own that is durable unless told otherwise", function* () {
    const { port, url } = yield* Fresh
    const rows = yield* ask(
      url,
      `SELECT current_database() AS database, current_user AS role, current_setting('fsync') AS fsync,
          current_setting('full_page_writes') AS full_page_writes, current_setting('server_encoding') AS encoding,
          current_setting('max_connections') AS max_connections, current_setting('TimeZone') AS timezone`
    )
    expect(rows).toEqual([
      {
        database: "payments",
        role: "payments",
        fsync: "on",
        full_page_writes: "on",
        encoding: "UTF8",
        max_connections: "200",
        timezone: "UTC"
      }
    ])
    expect(new URL(Redacted.value(url)).port).toBe(String(port))
  })

  it.scoped("keeps a password that only its owner may read, and refuses any other", function* () {
    const { directory, url } = yield* Fresh
    const file = join(directory, "password")
    expect((yield* Effect.promise(() => stat(file))).mode & 0o777).toBe(0o600)
    const password = yield* Effect.promise(() => readFile(file, "utf8"))
    expect(new URL(Redacted.value(url)).password).toBe(password)
    expect(password.length).toBeGreaterThanOrEqual(32)
    const names = yield* Effect.promise(() => readdir(directory))
    expect(names.filter((name) => name.startsWith("cluster.init-"))).toEqual([])
    const wrong = new URL(Redacted.value(url))
    wrong.password = "guess"
    const cause = yield* Effect.flip(Effect.sandbox(ask(wrong.href, "SELECT 1")))
    expect(Cause.pretty(cause)).toContain("password authentication failed")
  })

  it.scoped("listens on 127.0.0.1 and nowhere else", function* () {
    const { port, url } = yield* Fresh
    const settings =
      "current_setting('listen_addresses') AS addresses, current_setting('unix_socket_directories') AS sockets"
    expect(yield* ask(url, `SELECT ${settings}`)).toEqual([{ addresses: "127.0.0.1", sockets: "" }])
    expect(yield* accepts("127.0.0.1", port)).toBe(true)
    const others = Object.values(networkInterfaces())
      .flatMap((addresses) => addresses ?? [])
      .map(({ address }) => address)
      .filter((address) => address !== "127.0.0.1" && !address.startsWith("fe80"))
    for (const address of [...others, "::1", "127.0.0.2"]) {
      expect([address, yield* accepts(address, port)]).toEqual([address, false])
    }
  })

  it.scoped.skipIf(!isRoot)("runs as another user when root starts it (skipped unless run by root)", function* () {
    const { directory } = yield* Fresh
    const cluster = yield* Effect.promise(() => stat(join(directory, "cluster")))
    expect(cluster.uid).not.toBe(0)
    expect(cluster.mode & 0o077).toBe(0)
  })
})

describe.concurrent("a server that hangs", () => {
  it.scoped("is ended by force, so that the scope always closes", function* () {
    const directory = yield* dataDirectory
    const scope = yield* Scope.make()
    yield* Scope.extend(start({ directory }), scope)
    const postmaster = yield* postmasterOf(directory)
    // A stopped process handles neither the fast nor the immediate request.
    process.kill(postmaster, "SIGSTOP")
    yield* Scope.close(scope, Exit.void)
    expect(yield* isRunning(postmaster)).toBe(false)
    yield* Effect.scoped(start({ directory }))
  })
})

describe("a server that has ended by itself", () => {
  it.scoped("gets no signal when the scope closes: its number may be another process's by then", function* () {
    const directory = yield* dataDirectory
    const scope = yield* Scope.make()
    yield* Scope.extend(start({ directory }), scope)
    const pid = yield* postmasterOf(directory)
    process.kill(pid, "SIGKILL")
    yield* eventuallyTrue("the server's end", () => {
      try {
        return !process.kill(pid, 0)
      } catch {
        return true
      }
    })
    const kill = vi.spyOn(process, "kill")
    yield* Scope.close(scope, Exit.void)
    const signals = kill.mock.calls.filter(([to]) => to === pid)
    kill.mockRestore()
    expect(signals).toEqual([])
  })
})

describe.concurrent("startEmbeddedPostgres", () => {
  it.scoped("leaves no process behind when the scope closes, also with a transaction open", function* () {
    const directory = yield* dataDirectory
    const scope = yield* Scope.make()
    const { url, port } = yield* Scope.extend(start({ directory }), scope)
    const postmaster = yield* postmasterOf(directory)
    const client = new Client({ connectionString: Redacted.value(url) })
    client.on("error", () => {})
    yield* Effect.promise(() => client.connect())
    const [row] = (yield* Effect.promise(() => client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid"))).rows
    yield* Effect.promise(() => client.query("BEGIN"))
    yield* Scope.close(scope, Exit.void)
    expect(yield* isRunning(postmaster)).toBe(false)
    expect(yield* isRunning(row?.pid ?? process.pid)).toBe(false)
    expect(yield* accepts("127.0.0.1", port)).toBe(false)
  })

  it.scoped("finds its data again, at the same port", function* () {
    const directory = yield* dataDirectory
    const first = yield* Effect.scoped(
      Effect.tap(start({ directory }), ({ url }) => ask(url, "CREATE TABLE kept AS SELECT 'still here' AS word"))
    )
    const second = yield* start({ directory })
    expect(second).toEqual(first)
    expect(yield* ask(second.url, "SELECT word FROM kept")).toEqual([{ word: "still here" }])
  })

  it.scoped("takes another port where the last one is taken, and refuses a requested one", function* () {
    const directory = yield* dataDirectory
    const { port } = yield* Effect.scoped(start({ directory }))
    const squatter = createServer()
    yield* Effect.acquireRelease(
      Effect.promise(() => once(squatter.listen(port, "127.0.0.1"), "listening")),
      () => Effect.promise(() => new Promise((resolve) => squatter.close(resolve)))
    )
    const refused = yield* Effect.flip(Effect.scoped(start({ directory, port })))
    expect(refused).toMatchObject({ _tag: "EmbeddedPostgresError", reason: "port_in_use" })
    expect(refused.message).toContain(String(port))
    const other = yield* Effect.scoped(start({ directory }))
    expect(other.port).not.toBe(port)
    expect(yield* accepts("127.0.0.1", other.port)).toBe(false)
  })

  it.scoped("is one and the same under every name of its directory", function* () {
    const directory = yield* dataDirectory
    yield* Effect.scoped(start({ directory }))
    const alias = `${directory}-alias`
    yield* Effect.promise(() => symlink(directory, alias))
    yield* start({ directory: alias })
    expect((yield* Effect.flip(Effect.scoped(start({ directory })))).reason).toBe("in_use")
  })
})

describe.concurrent("a process that was killed", () => {
  it.scoped("leaves no server, and the next start finds all that was committed", function* () {
    const directory = yield* dataDirectory
    const holder = yield* startHolder(directory)
    yield* ask(holder.url, "CREATE TABLE kept AS SELECT 42 AS answer")
    const orphan = yield* postmasterOf(directory)
    process.kill(holder.pid, "SIGKILL")
    yield* Effect.promise(() => holder.exited)
    yield* eventually(
      "the server's end",
      Effect.map(isRunning(orphan), (runs) => (runs ? Option.none() : Option.some(true)))
    )
    const { url } = yield* start({ directory })
    expect(yield* postmasterOf(directory)).not.toBe(orphan)
    expect(yield* ask(url, "SELECT answer FROM kept")).toEqual([{ answer: 42 }])
  })

  it.scoped("and whose server died too does not stop the next start, even if its number was given away", function* () {
    const directory = yield* dataDirectory
    yield* Effect.scoped(start({ directory }))
    const cluster = join(directory, "cluster")
    const owner = yield* Effect.promise(() => stat(cluster))
    // PostgreSQL itself refuses to start where a process of its own user has the number in the status file.
    const stranger = spawn("sleep", ["600"], { stdio: "ignore", uid: owner.uid, gid: owner.gid, cwd: "/" })
    yield* Effect.addFinalizer(() => Effect.sync(() => stranger.kill("SIGKILL")))
    const status = [stranger.pid, cluster, 1, 5432, "", "127.0.0.1", "1 1", "ready"].join("\n")
    yield* Effect.promise(() => writeFile(join(cluster, "postmaster.pid"), `${status}\n`))
    const { url } = yield* start({ directory })
    expect(yield* ask(url, "SELECT 1 AS one")).toEqual([{ one: 1 }])
    expect(yield* isRunning(stranger.pid ?? 0)).toBe(true)
  })

  it.scoped("while it made the cluster leaves nothing that the next start could take for one", function* () {
    const directory = yield* emptyDirectory
    yield* Effect.promise(async () => {
      await mkdir(join(directory, "cluster.init-half", "base"), { recursive: true, mode: 0o711 })
      await chmod(directory, 0o711)
      await writeFile(join(directory, "cluster.init-half", "PG_VERSION"), "18\n")
      await writeFile(join(directory, "cluster.init-half.password"), "old")
      await writeFile(join(directory, "password"), "of the cluster that never was")
    })
    const { url } = yield* start({ directory })
    expect(yield* ask(url, "SELECT 1 AS one")).toEqual([{ one: 1 }])
    const names = yield* Effect.promise(() => readdir(directory))
    expect(names.filter((name) => name.startsWith("cluster"))).toEqual(["cluster"])
  })
})

describe.concurrent("a test's server", () => {
  it.scoped("is gone with its directory once the process is killed", function* () {
    const directory = yield* dataDirectory
    const holder = yield* startHolder(directory, "temporary")
    process.kill(holder.pid, "SIGKILL")
    const gone = Effect.sync(() => (existsSync(directory) ? Option.none() : Option.some(true)))
    yield* eventually("the end of the directory", gone)
  })
})

describe.concurrent("two services on one directory", () => {
  it.scoped("do not fight: the second is told who holds it, and the first goes on", function* () {
    const directory = yield* dataDirectory
    const holder = yield* startHolder(directory)
    const refused = yield* Effect.flip(Effect.scoped(start({ directory })))
    expect(refused).toMatchObject({ _tag: "EmbeddedPostgresError", reason: "in_use" })
    expect(refused.message).toContain(`is in use by process ${holder.pid}`)
    expect(refused.message).toContain("DATABASE_URL")
    expect((yield* Effect.flip(destroyEmbeddedPostgres(directory))).reason).toBe("in_use")
    expect(yield* ask(holder.url, "SELECT 1 AS one")).toEqual([{ one: 1 }])
  })

  it.scoped("start one server when they begin at the same moment", function* () {
    const directory = yield* emptyDirectory
    const attempts = yield* Effect.forEach([1, 2, 3], () => Effect.either(start({ directory })), {
      concurrency: "unbounded"
    })
    expect(attempts.map(({ _tag }) => _tag).sort()).toEqual(["Left", "Left", "Right"])
  })
})

describe.concurrent("Ctrl-C in a terminal", () => {
  it.scoped("leaves the server running until the service has drained, and then none", function* () {
    const directory = yield* dataDirectory
    const holder = yield* startHolder(directory)
    const postmaster = yield* postmasterOf(directory)
    process.kill(-holder.pid, "SIGINT")
    yield* Effect.promise(() => holder.exited)
    yield* eventuallyTrue("the word on the drain", () => holder.lines.length > 1)
    expect(holder.lines.slice(1)).toEqual(["drained"])
    expect(yield* isRunning(postmaster)).toBe(false)
  })
})

describe.concurrent("what cannot be started says why", () => {
  it.scoped("with the end of PostgreSQL's own log", function* () {
    const directory = yield* dataDirectory
    yield* Effect.scoped(start({ directory }))
    yield* Effect.promise(() =>
      writeFile(join(directory, "cluster", "postgresql.conf"), "shared_buffers = 'a few'\n", { flag: "a" })
    )
    const refused = yield* Effect.flip(Effect.scoped(start({ directory })))
    expect(refused.reason).toBe("start_failed")
    expect(refused.message).toContain('invalid value for parameter "shared_buffers"')
  })

  it.scoped("when the data is of another major version, or has lost its password", function* () {
    const directory = yield* dataDirectory
    yield* Effect.scoped(start({ directory }))
    const version = join(directory, "cluster", "PG_VERSION")
    yield* Effect.promise(() => rm(join(directory, "password")))
    expect((yield* Effect.flip(Effect.scoped(start({ directory })))).reason).toBe("data_missing")
    yield* Effect.promise(() => writeFile(version, "12\n"))
    const refused = yield* Effect.flip(Effect.scoped(start({ directory })))
    expect(refused.reason).toBe("version_mismatch")
    expect(refused.message).toContain("written by PostgreSQL 12")
  })

  it.scoped("when the directory cannot be made", function* () {
    const file = join(yield* temporaryDirectory, "file")
    yield* Effect.promise(() => writeFile(file, ""))
    const refused = yield* Effect.flip(Effect.scoped(start({ directory: join(file, "data") })))
    expect(refused.reason).toBe("io_failed")
    expect(refused.message).toContain(file)
  })
})

describe.concurrent("destroyEmbeddedPostgres", () => {
  it.scoped("stops a server that was left behind, and removes nothing but its own files", function* () {
    const directory = yield* dataDirectory
    const holder = yield* startHolder(directory)
    const orphan = yield* postmasterOf(directory)
    yield* Effect.promise(() => writeFile(join(directory, "notes.txt"), "mine"))
    process.kill(holder.pid, "SIGKILL")
    yield* Effect.promise(() => holder.exited)
    yield* destroyEmbeddedPostgres(directory)
    expect(yield* isRunning(orphan)).toBe(false)
    expect(yield* Effect.promise(() => readdir(directory))).toEqual(["notes.txt"])
  })

  it.scoped("does nothing where none was ever started", function* () {
    const directory = yield* temporaryDirectory
    yield* Effect.promise(() => mkdir(join(directory, "cluster")))
    yield* destroyEmbeddedPostgres(directory)
    yield* destroyEmbeddedPostgres(join(directory, "absent"))
    expect(yield* Effect.promise(() => readdir(directory))).toEqual(["cluster"])
  })
})

describe.skipIf(!isRoot).concurrent("started by root (skipped unless run by root)", () => {
  it.scoped("keeps the data elsewhere where that user cannot enter, and finds it again", function* () {
    const parent = yield* temporaryDirectory
    yield* Effect.promise(() => chmod(parent, 0o700))
    const directory = join(parent, "data")
    yield* Effect.scoped(
      Effect.tap(start({ directory }), ({ url }) => ask(url, "CREATE TABLE kept AS SELECT 1 AS one"))
    )
    const location = (yield* Effect.promise(() => readFile(join(directory, "location"), "utf8"))).trim()
    yield* Effect.addFinalizer(() => Effect.promise(() => rm(location, { recursive: true, force: true })))
    expect(location.startsWith(`${systemDirectory}/`)).toBe(true)
    yield* Effect.scoped(
      Effect.gen(function* () {
        const { url } = yield* start({ directory })
        expect(yield* ask(url, "SELECT one FROM kept")).toEqual([{ one: 1 }])
      })
    )
    yield* Effect.promise(() => rm(location, { recursive: true }))
    const refused = yield* Effect.flip(Effect.scoped(start({ directory })))
    expect(refused.reason).toBe("data_missing")
    expect(refused.message).toContain(location)
    yield* Effect.promise(() => rm(join(directory, "location")))
  })

  it.scoped("takes back a cluster whose files were restored as root's", function* () {
    const directory = yield* dataDirectory
    yield* Effect.scoped(start({ directory }))
    const chown = spawn("chown", ["-R", "0:0", join(directory, "cluster")])
    yield* Effect.promise(() => once(chown, "exit"))
    const { url } = yield* start({ directory })
    expect(yield* ask(url, "SELECT 1 AS one")).toEqual([{ one: 1 }])
  })
})
