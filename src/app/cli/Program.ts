import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Cause, Console, Effect, Exit, identity, Layer, Logger, Option } from "effect"
import { errorCode } from "../../platform/errors/ErrorCode.ts"
import { version } from "../../platform/settings/Version.ts"
import { RunAs } from "./Command.ts"
import { understand } from "./CommandLine.ts"
import { completionScript } from "./Completion.ts"
import { exitCodes, explain, explainDefect, WrongUsage } from "./Failure.ts"
import { commandHelp, overview, type Program, programName } from "./Help.ts"

/** The log of a command is on standard error. `serve` has its own log. */
const logger = Logger.replace(Logger.defaultLogger, Logger.withConsoleError(Logger.logfmtLogger))

/** Settings from a file; those that are set already stay. */
const loadSettings = (file: string) =>
  Effect.try({
    try: () => process.loadEnvFile(file),
    catch: (cause) => new WrongUsage({ message: `--env-file: ${file} can't be read (${errorCode(cause)}).` })
  })

const execute = Effect.fnUntraced(function* (program: Program, args: ReadonlyArray<string>) {
  const understood = yield* understand(program.commands, args)
  switch (understood._tag) {
    case "Version":
      return yield* Console.log(version)
    case "Completions":
      return yield* Console.log(completionScript(program.commands, understood.shell))
    case "Overview":
      return yield* Console.log(overview({ ...program, commands: understood.of }))
    case "Help":
      return yield* Console.log(commandHelp(understood.command, program.notes))
    case "Command": {
      const { as, command, envFile, given, logLevel } = understood
      if (envFile !== undefined) yield* loadSettings(envFile)
      return yield* command
        .run(given)
        .pipe(
          Effect.provide(Layer.merge(logger, Logger.minimumLogLevel(logLevel))),
          as === undefined ? identity : Effect.provideService(RunAs, as)
        )
    }
  }
})

const tell = (text: string, exitCode: number): Effect.Effect<number> => Effect.as(Console.error(text), exitCode)

const report = (cause: Cause.Cause<unknown>): Effect.Effect<number> =>
  Cause.isInterruptedOnly(cause)
    ? Effect.interrupt
    : Option.match(Cause.failureOption(cause), {
        onNone: () => tell(explainDefect(cause), exitCodes.failed),
        onSome: (failure) =>
          failure instanceof WrongUsage
            ? tell(
                `${failure.message}\nSee: ${[programName, failure.command ?? []].flat().join(" ")} --help`,
                exitCodes.usage
              )
            : tell(explain(failure), exitCodes.failed)
      })

/**
 * Runs a command line and returns the exit code; failures are printed to standard error as sentences. Interrupted only
 * if the process gets a signal to stop.
 *
 * @param args the arguments after the name of the program
 */
export const run = (program: Program, args: ReadonlyArray<string>): Effect.Effect<number> =>
  execute(program, args).pipe(Effect.as(exitCodes.done), Effect.catchAllCause(report))

/** A pipe holds 64 KiB: output that a slow reader has not consumed would be lost with the process. */
const whenTaken = (stream: NodeJS.WriteStream, done: () => void): void => {
  // If the reader is gone, the write fails, which must not fail the process
  stream.on("error", () => {})
  stream.write("", () => done())
}

export const runMain = (program: Program): void => {
  const main = Effect.map(run(program, process.argv.slice(2)), (exitCode) => {
    // A failed service has set its exit code already
    process.exitCode ||= exitCode
  })
  NodeRuntime.runMain(main, {
    disableErrorReporting: true,
    disablePrettyLogger: true,
    teardown: (exit, onExit) => {
      const interrupted = Exit.isFailure(exit) && Cause.isInterruptedOnly(exit.cause)
      const code = Number(process.exitCode ?? (interrupted ? exitCodes.interrupted : exitCodes.done))
      if (interrupted) onExit(code)
      else whenTaken(process.stdout, () => whenTaken(process.stderr, () => onExit(code)))
    }
  })
}
