import { spawn } from "node:child_process"
import { ConfigProvider, Effect, type Scope } from "effect"
import { runCli } from "../../src/cli/Cli.ts"
import { program } from "../harness/Program.ts"

/** How a command ended. */
export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  /** Standard output as JSON; fails the test where it is none. */
  readonly json: unknown
}

/** Settings of the machine that runs the tests must not reach the commands. */
const bare = { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "" }

/** A command that is under way. */
export interface Started {
  readonly ended: Effect.Effect<Ended>
  /** What it has printed so far. */
  readonly printed: () => Readonly<Record<"stdout" | "stderr", string>>
  /** Ctrl-C; returns how it ended. */
  readonly interrupt: Effect.Effect<Ended>
  readonly stop: Effect.Effect<Ended>
}

/** Starts the command line's command as a process of its own; it is stopped with the scope. */
export const startCli = (
  environment: Readonly<Record<string, string>>,
  ...args: ReadonlyArray<string>
): Effect.Effect<Started, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn(process.execPath, [...program("src/cli/main.ts"), ...args], {
        env: { ...bare, ...environment },
        stdio: ["ignore", "pipe", "pipe"]
      })
      const output = { stdout: "", stderr: "" }
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        output.stdout += text
      })
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        output.stderr += text
      })
      const closed = new Promise<number | null>((resolve) => child.once("close", resolve))
      const ended = Effect.map(
        Effect.promise(() => closed),
        (code): Ended => ({
          ...output,
          code,
          get json() {
            return JSON.parse(output.stdout)
          }
        })
      )
      const stop = Effect.zipRight(
        Effect.sync(() => child.kill("SIGTERM")),
        ended
      )
      const interrupt = Effect.zipRight(
        Effect.sync(() => child.kill("SIGINT")),
        ended
      )
      return { ended, printed: () => ({ ...output }), interrupt, stop }
    }),
    ({ stop }) => stop
  )

/** Runs a command to its end. */
export const cli = (environment: Readonly<Record<string, string>>, ...args: ReadonlyArray<string>) =>
  Effect.scoped(Effect.flatMap(startCli(environment, ...args), ({ ended }) => ended))

/** Runs a command in this process, which is quicker; what it prints is kept. */
export const cliHere = (
  environment: Readonly<Record<string, string>>,
  ...args: ReadonlyArray<string>
): Effect.Effect<Ended> =>
  Effect.consoleWith((console) => {
    const output = { stdout: "", stderr: "" }
    const keep = (stream: keyof typeof output) => (text: unknown) =>
      Effect.sync(() => {
        output[stream] += `${text}\n`
      })
    return runCli(args).pipe(
      Effect.withConsole({ ...console, log: keep("stdout"), error: keep("stderr") }),
      Effect.withConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(environment)))),
      Effect.map(
        (code): Ended => ({
          ...output,
          code,
          get json() {
            return JSON.parse(output.stdout)
          }
        })
      )
    )
  })
