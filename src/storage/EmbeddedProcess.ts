import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { readFile, readlink } from "node:fs/promises"
import { basename } from "node:path"
import { promisify } from "node:util"
import { Data, Effect, Option } from "effect"
import { wordsOf } from "./EmbeddedPostgresError.ts"

/** The operating system account that owns a cluster and runs its server. */
export interface Account {
  readonly name: string
  readonly uid: number
  readonly gid: number
}

/** A program could not be run, or exited with a status other than 0; `output` is what it printed. */
export class CommandError extends Data.TaggedError("CommandError")<{
  readonly command: string
  readonly output: string
  readonly cause: unknown
}> {}

/**
 * The environment of every program started here. The caller's own is not inherited, since `PGDATA`, `PGOPTIONS`,
 * `LD_PRELOAD` or a locale would change the server's behaviour. The `sbin` directories contain `useradd`.
 */
export const childEnvironment: NodeJS.ProcessEnv = {
  PATH: `${process.env["PATH"] ?? "/usr/bin:/bin"}:/usr/sbin:/sbin`,
  LC_ALL: "C",
  TZ: "UTC"
}

/** The `uid` and `gid` to spawn a program as `account`; empty for this process's own account. */
export const credentialsOf = (account: Option.Option<Account>): { readonly uid?: number; readonly gid?: number } =>
  Option.match(account, { onNone: () => ({}), onSome: ({ uid, gid }) => ({ uid, gid }) })

const execute = promisify(execFile)

const outputOf = (cause: unknown): string => {
  if (!(cause instanceof Error)) return String(cause)
  const streams = ["stdout", "stderr"].map((stream) => Object.entries(cause).find(([key]) => key === stream)?.[1])
  const printed = streams.filter((text) => typeof text === "string" && text.trim() !== "").join("\n")
  return printed === "" ? cause.message : printed.trim()
}

/** Runs a program to its end and returns its standard output. Interruption ends the program. */
export const runCommand = (
  command: string,
  args: ReadonlyArray<string>,
  account: Option.Option<Account> = Option.none()
): Effect.Effect<string, CommandError> =>
  Effect.tryPromise({
    // The account may not be able to enter the current directory
    try: (signal) =>
      execute(command, [...args], { ...credentialsOf(account), cwd: "/", env: childEnvironment, signal }),
    catch: (cause) => new CommandError({ command: basename(command), output: outputOf(cause), cause })
  }).pipe(Effect.map(({ stdout }) => stdout))

const hasProcFs = existsSync("/proc/self/stat")

const readOptional = (path: string) => Effect.option(Effect.tryPromise(() => readFile(path, "utf8")))

/** Signal 0 checks whether a process exists; "not permitted" means that it belongs to another user. */
const exists = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch (cause) {
    return !wordsOf(cause).includes("ESRCH")
  }
}

const startFromProcFs = Effect.fnUntraced(function* (pid: number) {
  const stat = yield* readOptional(`/proc/${pid}/stat`)
  if (Option.isNone(stat)) return exists(pid) ? Option.some("unknown") : Option.none()
  // The command name in parentheses may itself contain spaces and parentheses: count fields from the last one
  const fields = stat.value.slice(stat.value.lastIndexOf(")") + 2).split(" ")
  const [state, startTicks] = [fields[0], fields[19]]
  if (state === "Z" || state === "X") return Option.none()
  const boot = yield* readOptional("/proc/sys/kernel/random/boot_id")
  return Option.some(`${Option.getOrElse(boot, () => "").trim()}/${startTicks ?? ""}`)
})

const startFromPs = Effect.fnUntraced(function* (pid: number) {
  const line = yield* Effect.option(runCommand("ps", ["-o", "stat=", "-o", "lstart=", "-p", String(pid)]))
  if (Option.isNone(line)) return exists(pid) ? Option.some("unknown") : Option.none()
  const [state = "", ...started] = line.value.trim().split(/\s+/)
  return state.startsWith("Z") ? Option.none() : Option.some(started.join(" "))
})

/**
 * When a process began, as an opaque text that no later process with the same process id shares, not even after a
 * restart of the machine; `"unknown"` if the system does not provide it. `None` if no such process runs, which includes
 * a zombie.
 */
export const processStart = (pid: number): Effect.Effect<Option.Option<string>> => {
  if (!Number.isSafeInteger(pid) || pid <= 0) return Effect.succeedNone
  return hasProcFs ? startFromProcFs(pid) : startFromPs(pid)
}

/**
 * The command line of a running process, its arguments separated by a NUL or a space; `""` if the system does not
 * provide it.
 */
const commandLine = (pid: number): Effect.Effect<string> =>
  (hasProcFs
    ? readOptional(`/proc/${pid}/cmdline`)
    : Effect.option(runCommand("ps", ["-ww", "-o", "command=", "-p", String(pid)]))
  ).pipe(Effect.map(Option.getOrElse(() => "")))

/**
 * Whether process `pid` is the postmaster of the cluster at the real path `cluster`: `running`, `gone` (dead, or its
 * process id now belongs to another program), or `unclear`.
 *
 * Everybody can read the command line. The working directory identifies the cluster even after it was moved, but only
 * Linux shows it, and in a container not even root may see it. A postmaster that shows neither is `unclear`.
 */
export const postmasterState = Effect.fnUntraced(function* (pid: number, cluster: string) {
  if (Option.isNone(yield* processStart(pid))) return "gone"
  const command = (yield* commandLine(pid)).replaceAll("\0", " ")
  if (command.includes(` -D ${cluster} `)) return "running"
  const workingDirectory = yield* Effect.option(Effect.tryPromise(() => readlink(`/proc/${pid}/cwd`)))
  if (Option.isSome(workingDirectory)) return workingDirectory.value === cluster ? "running" : "gone"
  return command === "" || command.includes("postgres") ? "unclear" : "gone"
})
