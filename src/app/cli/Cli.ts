import { Cause, Console, Effect, Layer, Logger, Option } from "effect"
import { version } from "../../platform/settings/Version.ts"
import { accountCommands } from "./Accounts.ts"
import type { Command } from "./Command.ts"
import { understand } from "./CommandLine.ts"
import { completionScript } from "./Completion.ts"
import { emulatorCommands } from "./Emulator.ts"
import { exitCodes, explain, explainDefect, WrongUsage } from "./Failure.ts"
import { commandHelp, overview, programName } from "./Help.ts"
import { imageCommands } from "./Images.ts"
import { keyCommands } from "./Keys.ts"
import { listenCommands } from "./Listen.ts"
import { mcpCommands } from "./Mcp.ts"
import { memberCommands } from "./Members.ts"
import { organizationCommands } from "./Organizations.ts"
import { receiptCommands } from "./Receipts.ts"
import { serviceCommands } from "./Service.ts"

export const commands: ReadonlyArray<Command> = [
  ...serviceCommands,
  ...organizationCommands,
  ...memberCommands,
  ...keyCommands,
  ...accountCommands,
  ...imageCommands,
  ...receiptCommands,
  ...emulatorCommands,
  ...mcpCommands,
  ...listenCommands
]

/** The log of a command is on standard error. `serve` has its own log. */
const logger = Logger.replace(Logger.defaultLogger, Logger.withConsoleError(Logger.logfmtLogger))

const execute = Effect.fnUntraced(function* (args: ReadonlyArray<string>) {
  const understood = yield* understand(commands, args)
  switch (understood._tag) {
    case "Version":
      return yield* Console.log(version)
    case "Completions":
      return yield* Console.log(completionScript(commands, understood.shell))
    case "Overview":
      return yield* Console.log(overview(understood.of))
    case "Help":
      return yield* Console.log(commandHelp(understood.command))
    case "Command": {
      const { command, given, logLevel } = understood
      return yield* Effect.provide(command.run(given), Layer.merge(logger, Logger.minimumLogLevel(logLevel)))
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
export const runCli = (args: ReadonlyArray<string>): Effect.Effect<number> =>
  execute(args).pipe(Effect.as(exitCodes.done), Effect.catchAllCause(report))
