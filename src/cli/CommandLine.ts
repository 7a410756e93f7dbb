import { Option } from "effect"
import { WrongUsage } from "./Failure.ts"
import type { KnownCommand } from "./Synopsis.ts"

/**
 * Checks of the command line before the parser gets it: the parser knows the commands of one level only, and reports an
 * unknown option as another one missing.
 */

/** Splits `--name=value`, since the parser loses a repeated option that is written both ways. */
export const normalize = (commandLine: ReadonlyArray<string>): ReadonlyArray<string> =>
  commandLine.flatMap((arg) => {
    const [, option, value] = /^(--[a-z][a-z-]*)=(.*)$/s.exec(arg) ?? []
    return option === undefined || value === undefined ? [arg] : [option, value]
  })

/** The words that name the command: those before the first option, at most a noun and a verb. */
export const commandWords = (args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const end = args.findIndex((arg) => arg.startsWith("-"))
  return (end < 0 ? args : args.slice(0, end)).slice(0, 2)
}

/** The commands whose names begin with these words; words after a full name are arguments. */
export const commandsUnder = (
  commands: ReadonlyArray<KnownCommand>,
  words: ReadonlyArray<string>
): ReadonlyArray<KnownCommand> =>
  commands.filter(({ command }) => {
    const parts = command.split(" ")
    return words.slice(0, parts.length).every((word, index) => parts[index] === word)
  })

/** Whether the words name exactly one command. */
const isWhole = (command: KnownCommand, words: ReadonlyArray<string>): boolean =>
  command.command.split(" ").length <= words.length

/** Whether the arguments ask for help. */
export const asksForHelp = (args: ReadonlyArray<string>): boolean =>
  args.some((arg) => arg === "--help" || arg === "-h")

/** Options of the program, which may be before or after any command. */
const programOptions = new Set(["--help", "--version", "--wizard", "--completions", "--log-level"])

/** The command to run, or what is wrong with the command line. */
export type Understood =
  | { readonly _tag: "Command"; readonly command: KnownCommand }
  | { readonly _tag: "Overview"; readonly of: ReadonlyArray<KnownCommand> }
  | { readonly _tag: "Program" }
  | { readonly _tag: "Wrong"; readonly error: WrongUsage }

const wrong = (problem: string, known: Iterable<string>): Understood => {
  const available = [...new Set(known)].join(", ")
  return {
    _tag: "Wrong",
    error: new WrongUsage({ message: available === "" ? problem : `${problem} Available: ${available}.` })
  }
}

/** An option that the command does not have; the argument after an option is its value, whatever it looks like. */
const unknownOption = ({ options }: KnownCommand, args: ReadonlyArray<string>): Option.Option<string> =>
  Option.fromNullable(
    args.find(
      (arg, index) =>
        /^--[a-z]/.test(arg) && !options.has(arg) && !programOptions.has(arg) && !takesValue(options, args[index - 1])
    )
  )

const takesValue = (options: ReadonlySet<string>, before: string | undefined): boolean =>
  before !== undefined && before !== "--json" && options.has(before)

/** Checks only words and options; the parser checks values. */
export const understand = (commands: ReadonlyArray<KnownCommand>, args: ReadonlyArray<string>): Understood => {
  const words = commandWords(args)
  const under = commandsUnder(commands, words)
  const [first] = under
  const nouns = commands.map(({ command }) => command.replace(/ .*/, ""))
  if (first === undefined) {
    const siblings = commandsUnder(commands, words.slice(0, 1)).map(({ command }) => command)
    return wrong(`There is no command '${words.join(" ")}'.`, siblings.length === 0 ? nouns : siblings)
  }
  if (isWhole(first, words)) {
    const unknown = unknownOption(first, args)
    return Option.isNone(unknown)
      ? { _tag: "Command", command: first }
      : wrong(
          first.options.size === 0
            ? `The command '${first.command}' has no options; it was given ${unknown.value}.`
            : `The command '${first.command}' has no option ${unknown.value}.`,
          first.options
        )
  }
  if (asksForHelp(args)) {
    return { _tag: "Overview", of: under }
  }
  return words.length === 0 && args.length > 0
    ? { _tag: "Program" }
    : wrong(
        words.length === 0 ? "No command is given." : `'${words.join(" ")}' is not a complete command.`,
        words.length === 0 ? nouns : under.map(({ command }) => command)
      )
}
