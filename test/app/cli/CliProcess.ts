import { spawn } from "node:child_process"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import { ConfigProvider, Effect, Option, Redacted, type Scope } from "effect"
import { runCli } from "../../../src/app/cli/Cli.ts"
import { outputOf } from "../../harness/Output.ts"
import { program } from "../../harness/Program.ts"
import { TestService } from "../../harness/TestService.ts"
import { temporaryDirectory } from "../../platform/storage/fixtures/temporaryDirectory.ts"

/** The settings of the service under test for commands, with a data directory of their own. */
export const operatorSettings = Effect.gen(function* () {
  const { emulator, options } = yield* TestService
  const sandbox = Option.getOrThrow(options.provider.sandbox)
  return {
    DATABASE_URL: Redacted.value(options.databaseUrl),
    DATA_DIR: join(yield* temporaryDirectory, "data"),
    PROVIDER_SANDBOX_SECRET_KEY: Redacted.value(sandbox.secretKey),
    PROVIDER_SANDBOX_WEBHOOK_SECRETS: sandbox.webhookSecrets.map(Redacted.value).join(","),
    PROVIDER_API_URL: emulator.url
  }
})

/** Done: exit code 0 and nothing on standard error. */
export const expectDone = (ended: Ended): Ended => {
  expect(ended, ended.stderr).toMatchObject({ code: 0, stderr: "" })
  return ended
}

/** Not done: a sentence on standard error, no trace of the code, and nothing on standard output. */
export const expectRefused = (ended: Ended, code: 1 | 2, words: string | RegExp): void => {
  expect(ended.code, ended.stderr).toBe(code)
  expect(ended.stdout).toBe("")
  expect(ended.stderr).toMatch(words)
  expect(ended.stderr).not.toMatch(/\n\s+at |This is a bug/)
}

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  /** Standard output as JSON; fails the test where it is none. */
  readonly json: unknown
}

const endedWith = (code: number | null, output: Pick<Ended, "stdout" | "stderr">): Ended => ({
  ...output,
  code,
  get json() {
    return JSON.parse(output.stdout)
  }
})

/** Settings of the machine that runs the tests must not reach the commands. */
const bare = { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "" }

export interface Started {
  readonly ended: Effect.Effect<Ended>
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
      const child = spawn(process.execPath, [...program("src/app/cli/main.ts"), ...args], {
        env: { ...bare, ...environment },
        stdio: ["ignore", "pipe", "pipe"]
      })
      const output = outputOf(child)
      const closed = new Promise<number | null>((resolve) => child.once("close", resolve))
      const ended = Effect.map(
        Effect.promise(() => closed),
        (code) => endedWith(code, output)
      )
      const kill = (signal: NodeJS.Signals) =>
        Effect.zipRight(
          Effect.sync(() => child.kill(signal)),
          ended
        )
      return { ended, printed: () => ({ ...output }), interrupt: kill("SIGINT"), stop: kill("SIGTERM") }
    }),
    ({ stop }) => stop
  )

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
      Effect.map((code) => endedWith(code, output))
    )
  })
