import { parseArgs } from "node:util"
import { Either, LogLevel } from "effect"
import { type Command, type Given, isArgument, type Parameter } from "./Command.ts"
import { WrongUsage } from "./Failure.ts"

const shells = ["sh", "bash", "fish", "zsh"] as const
export type Shell = (typeof shells)[number]

const levels = LogLevel.allLevels.map((level) => ({ name: level._tag.toLowerCase(), level }))

const namesOf = (all: ReadonlyArray<{ readonly name: string }>) => all.map(({ name }) => name)

const parameter = (
  key: string,
  description: string,
  choices: ReadonlyArray<string> = [],
  form = choices.length === 0 ? "" : `<${choices.join("|")}>`
): Parameter => ({
  key,
  name: `--${key}`,
  form,
  description,
  required: false,
  repeated: false,
  choices
})

export const programOptions: ReadonlyArray<Parameter> = [
  parameter("help", "Show the help of a command, or of all."),
  parameter("log-level", "What is logged to standard error.", namesOf(levels)),
  parameter("env-file", "Read settings that are not set from a file, such as that of the systemd units.", [], "<file>"),
  parameter("as", "Who runs the command, for the audit log.", [], "<name>"),
  parameter("version", "Show the version."),
  parameter("completions", "Print a completion script for a shell.", shells)
]

const personName = /^[^\p{C}]{1,100}$/u

export type Understood =
  | {
      readonly _tag: "Command"
      readonly command: Command
      readonly given: Given
      readonly logLevel: LogLevel.LogLevel
      readonly envFile: string | undefined
      readonly as: string | undefined
    }
  | { readonly _tag: "Help"; readonly command: Command }
  | { readonly _tag: "Overview"; readonly of: ReadonlyArray<Command> }
  | { readonly _tag: "Version" }
  | { readonly _tag: "Completions"; readonly shell: Shell }

const startsWith = (whole: ReadonlyArray<string>, start: ReadonlyArray<string>): boolean =>
  start.every((word, index) => whole[index] === word)

const wordsOf = ({ name }: Command): ReadonlyArray<string> => name.split(" ")

const tokensOf = (known: ReadonlyArray<Parameter>, args: ReadonlyArray<string>) => {
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
  return {
    words: tokens.flatMap((token) => (token.kind === "positional" ? [token.value] : [])),
    options: tokens.flatMap((token) =>
      token.kind === "option"
        ? [{ name: token.rawName === "-h" ? "--help" : token.rawName, value: token.value, inline: token.inlineValue }]
        : []
    )
  }
}

type WrittenOption = ReturnType<typeof tokensOf>["options"][number]

const wrong = (command: Command | undefined, problem: string, available: ReadonlyArray<string> = []) =>
  Either.left(
    new WrongUsage({
      message: available.length === 0 ? problem : `${problem} Available: ${[...new Set(available)].join(", ")}.`,
      ...(command === undefined ? {} : { command: command.name })
    })
  )

const noSuchOption = (command: Command | undefined, name: string) => {
  if (command === undefined) return wrong(command, `There is no option ${name}.`, namesOf(programOptions))
  const own = command.parameters.filter((one) => !isArgument(one))
  return own.length === 0
    ? wrong(command, `The command '${command.name}' has no options; it was given ${name}.`)
    : wrong(command, `The command '${command.name}' has no option ${name}.`, namesOf(own))
}

type Values = Map<Parameter, ReadonlyArray<string>>

const valuesOf = (
  options: ReadonlyArray<WrittenOption>,
  takes: ReadonlyArray<Parameter>,
  command: Command | undefined
): Either.Either<Values, WrongUsage> => {
  const given: Values = new Map()
  for (const { inline, name, value } of options) {
    const taken = takes.find((one) => one.name === name)
    if (taken === undefined) return noSuchOption(command, name)
    if (taken.form === "" && inline === true) return wrong(command, `${name} takes no value.`)
    if (taken.form !== "" && value === undefined) return wrong(command, `${name} needs a value: ${taken.form}.`)
    const before = given.get(taken) ?? []
    if (taken.form !== "" && !taken.repeated && before.length > 0) return wrong(command, `${name} is given twice.`)
    given.set(taken, [...before, value ?? ""])
  }
  return Either.right(given)
}

const invocation = (
  command: Command,
  rest: ReadonlyArray<string>,
  given: Values,
  program: Pick<Extract<Understood, { readonly _tag: "Command" }>, "logLevel" | "envFile" | "as">
): Either.Either<Understood, WrongUsage> => {
  const argument = command.parameters.find(isArgument)
  const unexpected = rest[argument === undefined ? 0 : 1]
  if (unexpected !== undefined) {
    return wrong(command, `The command '${command.name}' takes no argument '${unexpected}'.`)
  }
  const [value] = rest
  if (argument !== undefined && value !== undefined) given.set(argument, [value])
  const entries = command.parameters.flatMap((one): ReadonlyArray<[string, Given[string]]> => {
    const values = given.get(one)
    return values === undefined
      ? []
      : [[one.key, one.form === "" ? true : one.repeated ? [...new Set(values)] : (values[0] ?? "")]]
  })
  return Either.right({ _tag: "Command", command, given: Object.fromEntries(entries), ...program })
}

/** Parses a command line. The forms of the values are checked by the command itself. */
export const understand = (
  commands: ReadonlyArray<Command>,
  args: ReadonlyArray<string>
): Either.Either<Understood, WrongUsage> => {
  const known = [...programOptions, ...commands.flatMap(({ parameters }) => parameters)].filter(
    (one) => !isArgument(one)
  )
  const { options, words } = tokensOf(known, args)
  const command = commands.find((one) => startsWith(words, wordsOf(one)))
  const named = words.slice(0, 2)
  const under = commands.filter((one) => startsWith(wordsOf(one), named))
  const nouns = commands.flatMap((one) => wordsOf(one).slice(0, 1))
  if (command === undefined && under.length === 0) {
    const siblings = namesOf(commands.filter((one) => startsWith(wordsOf(one), named.slice(0, 1))))
    return wrong(command, `There is no command '${named.join(" ")}'.`, siblings.length === 0 ? nouns : siblings)
  }
  const values = valuesOf(options, [...programOptions, ...(command?.parameters ?? known)], command)
  if (Either.isLeft(values)) return Either.left(values.left)
  const given = values.right

  const valueOf = (name: string) =>
    programOptions.flatMap((one) => (one.name === name ? (given.get(one) ?? []) : []))[0]
  if (valueOf("--help") !== undefined) {
    return Either.right(command === undefined ? { _tag: "Overview", of: under } : { _tag: "Help", command })
  }
  if (valueOf("--version") !== undefined) return Either.right({ _tag: "Version" })
  const wanted = valueOf("--completions")
  const shell = shells.find((one) => one === wanted)
  if (shell !== undefined) return Either.right({ _tag: "Completions", shell })
  if (wanted !== undefined) return wrong(command, `--completions must be ${shells.join(" or ")}.`)
  const level = levels.find(({ name }) => name === (valueOf("--log-level") ?? "warning"))
  if (level === undefined) return wrong(command, `--log-level must be ${namesOf(levels).join(" or ")}.`)
  const as = valueOf("--as")
  if (as !== undefined && !personName.test(as)) return wrong(command, "--as must be a name of 1 to 100 characters.")
  if (command !== undefined) {
    const program = { logLevel: level.level, envFile: valueOf("--env-file"), as }
    return invocation(command, words.slice(wordsOf(command).length), given, program)
  }
  return words.length === 0
    ? wrong(command, "No command is given.", nouns)
    : wrong(command, `'${words.join(" ")}' is not a complete command.`, namesOf(under))
}
