import { version } from "../../platform/settings/Version.ts"
import { type Command, isArgument, type Parameter, written } from "./Command.ts"
import { columns } from "./Output.ts"

export const programName = "connected-payments"

export interface Program {
  readonly commands: ReadonlyArray<Command>
  /** A paragraph about all commands, at the end of each help text. */
  readonly notes: string
}

const exitCodeNote = "Exit codes: 0 done, 1 failed, 2 wrong usage. Failures are printed to standard error."

const exampleOf = ({ example, name }: Command): string => `  $ ${programName} ${name} ${example}`.trimEnd()

/** The help for all commands or those of one noun: a line and an example for each. */
export const overview = ({ commands, notes }: Program): string =>
  [
    `${programName} ${version}`,
    `Usage: ${programName} <command> [options]`,
    `Commands:\n${columns(commands.map(({ name, summary }) => [`  ${name}`, summary]))}`,
    `Examples:\n${commands.map(exampleOf).join("\n")}`,
    "Options of every command: --help, --log-level LEVEL, --env-file FILE, --as NAME. Of the program: --version, --completions sh|bash|fish|zsh.",
    `${notes}\n${exitCodeNote}`
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
export const commandHelp = (command: Command, notes: string): string => {
  const options = command.parameters.filter((one) => !isArgument(one))
  const args = command.parameters.filter(isArgument)
  return [
    `${programName} ${version}`,
    `Usage:\n  ${["$", programName, command.name, ...[...options, ...args].map(inUsage)].join(" ")}`,
    command.summary,
    ...details("Arguments", args),
    ...details("Options", options),
    `Example:\n${exampleOf(command)}`,
    `${notes}\n${exitCodeNote}`
  ].join("\n\n")
}
