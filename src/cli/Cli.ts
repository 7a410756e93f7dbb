import { CliConfig, Command, ValidationError } from "@effect/cli"
import { NodeContext } from "@effect/platform-node"
import { Cause, Console, Effect, Layer, Logger, LogLevel, Option } from "effect"
import { version } from "../settings/Version.ts"
import { accountCommands, accounts } from "./Accounts.ts"
import { asksForHelp, commandsUnder, commandWords, normalize, understand } from "./CommandLine.ts"
import { emulator, emulatorCommands } from "./Emulator.ts"
import { exitCodes, explain, explainDefect, WrongUsage } from "./Failure.ts"
import { commandHelp, overview, programName } from "./Help.ts"
import { imageCommands, imagesCommand } from "./Images.ts"
import { keyCommands, keys } from "./Keys.ts"
import { listenCommand, listenCommands, triggerCommand } from "./Listen.ts"
import { mcp, mcpCommands } from "./Mcp.ts"
import { memberCommands, members } from "./Members.ts"
import { organizationCommands, organizations } from "./Organizations.ts"
import { withPlainConsole } from "./Output.ts"
import { receiptCommands, receipts } from "./Receipts.ts"
import { migrate, serve, serviceCommands } from "./Service.ts"
import type { KnownCommand } from "./Synopsis.ts"

const root = Command.make(programName).pipe(
  Command.withDescription("Run and administer the connected-payments service."),
  Command.withSubcommands([
    serve.command,
    migrate.command,
    organizations,
    members,
    keys,
    accounts,
    imagesCommand,
    receipts,
    emulator,
    mcp.command,
    listenCommand,
    triggerCommand
  ])
)

/** Every command. */
export const commands: ReadonlyArray<KnownCommand> = [
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

/** Logs warnings and errors to standard error, unless `--log-level` says otherwise. `serve` has its own log. */
const logger = Layer.merge(
  Logger.replace(Logger.defaultLogger, Logger.withConsoleError(Logger.logfmtLogger)),
  Logger.minimumLogLevel(LogLevel.Warning)
)

const parseAndRun = (args: ReadonlyArray<string>) =>
  // The parser drops the first two, which usually are the paths of Node and of the script
  Command.run(root, { name: programName, version, executable: programName })(["", "", ...args])

const execute = Effect.fnUntraced(function* (args: ReadonlyArray<string>) {
  const understood = understand(commands, args)
  switch (understood._tag) {
    case "Wrong":
      return yield* understood.error
    case "Overview":
      return yield* Console.log(overview(understood.of))
    case "Program":
      return yield* parseAndRun(args)
    case "Command":
      return yield* asksForHelp(args) ? Console.log(commandHelp(understood.command)) : parseAndRun(args)
  }
}, withPlainConsole)

const tell = (text: string, exitCode: number): Effect.Effect<number> => Effect.as(Console.error(text), exitCode)

/** Reports the failure of a command. The parser has already reported its own refusals. */
const report = (cause: Cause.Cause<unknown>, args: ReadonlyArray<string>): Effect.Effect<number> => {
  if (Cause.isInterruptedOnly(cause)) {
    return Effect.interrupt
  }
  const words = commandWords(args)
  // Words after the name of a command are its arguments
  const named =
    words.length === 0
      ? []
      : commandsUnder(commands, words)
          .slice(0, 1)
          .map(({ command }) => command)
  const seeHelp = `See: ${[programName, ...named].join(" ")} --help`
  return Option.match(Cause.failureOption(cause), {
    onNone: () => tell(explainDefect(cause), exitCodes.failed),
    onSome: (failure) =>
      ValidationError.isValidationError(failure)
        ? tell(seeHelp, exitCodes.usage)
        : failure instanceof WrongUsage
          ? tell(`${failure.message}\nSee: ${programName} --help`, exitCodes.usage)
          : tell(explain(failure), exitCodes.failed)
  })
}

/**
 * Runs a command line and returns the exit code; failures are printed to standard error as sentences. Interrupted only
 * if the process gets a signal to stop.
 *
 * @param commandLine the arguments after the name of the program
 */
export const runCli = (commandLine: ReadonlyArray<string>): Effect.Effect<number> => {
  const args = normalize(commandLine)
  return execute(args).pipe(
    Effect.as(exitCodes.done),
    Effect.provide(Layer.mergeAll(NodeContext.layer, CliConfig.layer({ showBuiltIns: false, isCaseSensitive: true }))),
    Effect.provide(logger),
    Effect.catchAllCause((cause) => report(cause, args))
  )
}
