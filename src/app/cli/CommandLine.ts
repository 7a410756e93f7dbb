import { parseArgs } from "node:util"
import { Either, LogLevel } from "effect"
import { type Command, type Given, isArgument, type Parameter } from "./Command.ts"
import { WrongUsage } from "./Failure.ts"

/** The shells that a completion script can be written for. */
const shells = ["sh", "bash", "fish", "zsh"] as const
export type Shell = (typeof shells)[number]

const levels = LogLevel.allLevels.map((level) => ({ name: level._tag.toLowerCase(), level }))

const parameter = (key: string, description: string, choices: ReadonlyArray<string> = []): Parameter => ({
  key,
  name: `--${key}`,
  form: choices.length === 0 ? "" : `<${choices.join("|")}>`,
  description,
  required: false,
  repeated: false,
  choices
})

/** Options that are allowed before or after any command. */
export const programOptions: ReadonlyArray<Parameter> = [
  parameter("help", "Show the help of a command, or of all."),
  parameter(
    "log-level",
    "What is logged to standard error.",
    levels.map(({ name }) => name)
  ),
  parameter("version", "Show the version."),
  parameter("completions", "Print a completion script for a shell.", shells)
]

/** A parsed command line. */
export type Understood =
  | {
      readonly _tag: "Command"
      readonly command: Command
      readonly given: Given
      readonly logLevel: LogLevel.LogLevel
    }
  | { readonly _tag: "Help"; readonly command: Command }
  | { readonly _tag: "Overview"; readonly of: ReadonlyArray<Command> }
  | { readonly _tag: "Version" }
  | { readonly _tag: "Completions"; readonly shell: Shell }

const startsWith = (whole: ReadonlyArray<string>, start: ReadonlyArray<string>): boolean =>
  start.every((word, index) => whole[index] === word)

const wordsOf = ({ name }: Command): ReadonlyArray<string> => name.split(" ")

/** Parses a command line. The forms of the values are checked by the command itself. */
export const understand = (
  commands: ReadonlyArray<Command>,
  args: ReadonlyArray<string>
): Either.Either<Understood, WrongUsage> => {
  const known = [...programOptions, ...commands.flatMap(({ parameters }) => parameters)].filter(
    (one) => !isArgument(one)
  )
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(
      known.map(({ form, name }) => [
        name.slice(2),
        { type: form === "" ? "boolean" : "string", ...(name === "--help" ? { short: "h" } : {}) }
      ])
    ),
    // Errors have our own wording
    strict: false,
    allowPositionals: true,
    tokens: true
  })
  const words = tokens.flatMap((token) => (token.kind === "positional" ? [token.value] : []))
  const options = tokens.flatMap((token) =>
    token.kind === "option"
      ? [{ name: token.rawName === "-h" ? "--help" : token.rawName, value: token.value, inline: token.inlineValue }]
      : []
  )
  const command = commands.find((one) => startsWith(words, wordsOf(one)))
  const wrong = (problem: string, available: ReadonlyArray<string> = []) =>
    Either.left(
      new WrongUsage({
        message: available.length === 0 ? problem : `${problem} Available: ${[...new Set(available)].join(", ")}.`,
        ...(command === undefined ? {} : { command: command.name })
      })
    )

  const named = words.slice(0, 2)
  const under = commands.filter((one) => startsWith(wordsOf(one), named))
  const nouns = commands.flatMap((one) => wordsOf(one).slice(0, 1))
  if (command === undefined && under.length === 0) {
    const siblings = commands.filter((one) => startsWith(wordsOf(one), named.slice(0, 1))).map(({ name }) => name)
    return wrong(`There is no command '${named.join(" ")}'.`, siblings.length === 0 ? nouns : siblings)
  }

  const takes = [...programOptions, ...(command === undefined ? known : command.parameters)]
  const given = new Map<Parameter, ReadonlyArray<string>>()
  for (const { inline, name, value } of options) {
    const taken = takes.find((one) => one.name === name)
    if (taken === undefined && command === undefined) {
      return wrong(
        `There is no option ${name}.`,
        programOptions.map((one) => one.name)
      )
    }
    if (taken === undefined) {
      const own = takes.slice(programOptions.length).filter((one) => !isArgument(one))
      return own.length === 0
        ? wrong(`The command '${command?.name}' has no options; it was given ${name}.`)
        : wrong(
            `The command '${command?.name}' has no option ${name}.`,
            own.map((one) => one.name)
          )
    }
    if (taken.form === "" && inline === true) return wrong(`${name} takes no value.`)
    if (taken.form !== "" && value === undefined) return wrong(`${name} needs a value: ${taken.form}.`)
    const before = given.get(taken) ?? []
    if (taken.form !== "" && !taken.repeated && before.length > 0) return wrong(`${name} is given twice.`)
    given.set(taken, [...before, value ?? ""])
  }

  const valueOf = (name: string) =>
    programOptions.flatMap((one) => (one.name === name ? (given.get(one) ?? []) : []))[0]
  if (valueOf("--help") !== undefined) {
    return Either.right(command === undefined ? { _tag: "Overview", of: under } : { _tag: "Help", command })
  }
  if (valueOf("--version") !== undefined) return Either.right({ _tag: "Version" })
  const wanted = valueOf("--completions")
  const shell = shells.find((one) => one === wanted)
  if (shell !== undefined) return Either.right({ _tag: "Completions", shell })
  if (wanted !== undefined) return wrong(`--completions must be ${shells.join(" or ")}.`)
  const level = levels.find(({ name }) => name === (valueOf("--log-level") ?? "warning"))
  if (level === undefined) return wrong(`--log-level must be ${levels.map(({ name }) => name).join(" or ")}.`)

  if (command === undefined) {
    return words.length === 0
      ? wrong("No command is given.", nouns)
      : wrong(
          `'${words.join(" ")}' is not a complete command.`,
          under.map(({ name }) => name)
        )
  }
  const rest = words.slice(wordsOf(command).length)
  const argument = command.parameters.find(isArgument)
  const unexpected = rest[argument === undefined ? 0 : 1]
  if (unexpected !== undefined) return wrong(`The command '${command.name}' takes no argument '${unexpected}'.`)
  const [value] = rest
  if (argument !== undefined && value !== undefined) given.set(argument, [value])
  const entries = command.parameters.flatMap((one): ReadonlyArray<[string, Given[string]]> => {
    const values = given.get(one)
    return values === undefined
      ? []
      : [[one.key, one.form === "" ? true : one.repeated ? [...new Set(values)] : (values[0] ?? "")]]
  })
  return Either.right({ _tag: "Command", command, given: Object.fromEntries(entries), logLevel: level.level })
}
