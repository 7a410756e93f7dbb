import { version } from "../../platform/settings/Version.ts"
import { type Command, isArgument, type Parameter, written } from "./Command.ts"
import { columns } from "./Output.ts"

/** The help, from the table of commands. */

export const programName = "connected-payments"

const notes = [
  "Commands work on the service's own settings: DATABASE_URL and the others. Without DATABASE_URL they use the service that runs on DATA_DIR, or start its embedded database for the duration of the command. `listen`, `trigger` and `mcp` need only the URL of a running service and an API key.",
  "Exit codes: 0 done, 1 failed, 2 wrong usage. Failures are printed to standard error."
].join("\n")

const exampleOf = ({ example, name }: Command): string => `  $ ${programName} ${name} ${example}`.trimEnd()

/** The help for all commands or those of one noun: a line and an example for each. */
export const overview = (commands: ReadonlyArray<Command>): string =>
  [
    `${programName} ${version}`,
    `Usage: ${programName} <command> [options]`,
    `Commands:\n${columns(commands.map(({ name, summary }) => [`  ${name}`, summary]))}`,
    `Examples:\n${commands.map(exampleOf).join("\n")}`,
    "Options of every command: --help, --log-level LEVEL. Of the program: --version, --completions sh|bash|fish|zsh.",
    notes
  ].join("\n\n")

const inUsage = (parameter: Parameter): string => {
  const repeatable = parameter.repeated ? `${written(parameter)}...` : written(parameter)
  return parameter.required ? repeatable : `[${repeatable}]`
}

const details = (title: string, parameters: ReadonlyArray<Parameter>): ReadonlyArray<string> =>
  parameters.length === 0
    ? []
    : [`${title}:`, ...parameters.map((one) => `  ${written(one)}\n      ${one.description}`)]

/** The help for one command: its usage, its options with the forms of their values, and an example. */
export const commandHelp = (command: Command): string => {
  const options = command.parameters.filter((one) => !isArgument(one))
  const args = command.parameters.filter(isArgument)
  return [
    `${programName} ${version}`,
    `Usage:\n  ${["$", programName, command.name, ...[...options, ...args].map(inUsage)].join(" ")}`,
    command.summary,
    ...details("Arguments", args),
    ...details("Options", options),
    `Example:\n${exampleOf(command)}`,
    notes
  ].join("\n\n")
}
