import { type Command, isArgument, type Parameter } from "./Command.ts"
import { programOptions, type Shell } from "./CommandLine.ts"
import { programName } from "./Help.ts"

/** The completions after the first one or two words of the line, each with its meaning. */
interface Step {
  /** The words, or a glob pattern of them. */
  readonly after: string
  readonly next: ReadonlyArray<readonly [word: string, meaning: string]>
}

/** The first clause, without characters that a shell or its menu would take for syntax. */
const meaningOf = (text: string): string => text.replaceAll(/['`]/g, "").replace(/[.:;,](?: .*)?$/s, "")

const wordsOf = (parameters: ReadonlyArray<Parameter>): Step["next"] =>
  parameters.flatMap((one) =>
    (isArgument(one) ? one.choices : [one.name]).map((word) => [word, meaningOf(one.description)] as const)
  )

const stepsOf = (commands: ReadonlyArray<Command>): ReadonlyArray<Step> => {
  const words = commands.map(({ name, summary }) => ({ words: name.split(" "), meaning: meaningOf(summary) }))
  const nouns = [...new Set(words.map(({ words: [noun = ""] }) => noun))]
  const verbsOf = (noun: string) =>
    words.flatMap(({ meaning, words: [first, verb] }) =>
      first === noun && verb !== undefined ? [[verb, meaning] as const] : []
    )
  const nounMeaning = (noun: string) =>
    words.find(({ words: [first, verb] }) => first === noun && verb === undefined)?.meaning ??
    verbsOf(noun)
      .map(([verb]) => verb)
      .join(", ")
  return [
    { after: "", next: [...nouns.map((noun) => [noun, nounMeaning(noun)] as const), ...wordsOf(programOptions)] },
    ...nouns.map((noun) => ({ after: noun, next: verbsOf(noun) })).filter(({ next }) => next.length > 0),
    ...commands.map(({ name, parameters }) => ({
      after: name.includes(" ") ? name : `${name}*`,
      next: wordsOf([...parameters, ...programOptions.slice(0, 4)])
    }))
  ]
}

const fish = (steps: ReadonlyArray<Step>, choices: ReadonlyMap<string, string>): ReadonlyArray<string> => [
  "function __connected_payments_after",
  "  set -l words (commandline -opc)",
  '  string match -q -- $argv[1] "$words[2..3]"',
  "end",
  `complete -c ${programName} -f`,
  ...[...choices].map(([name, words]) => `complete -c ${programName} -l ${name.slice(2)} -x -a '${words}'`),
  ...steps.flatMap(({ after, next }) =>
    next.map(
      ([word, meaning]) =>
        `complete -c ${programName} -n '__connected_payments_after "${after}"' -a '${word}' -d '${meaning}'`
    )
  )
]

/** The `case` statements of bash and zsh, which differ in how they list completions. */
const cases = (
  steps: ReadonlyArray<Step>,
  choices: ReadonlyMap<string, string>,
  listed: (next: Step["next"]) => string
): ReadonlyArray<string> => [
  '  case "$before" in',
  ...[...choices].map(([name, words]) => `    ${name}) next=(${words}) ;;`),
  '    *) case "$after" in',
  ...steps.map(({ after, next }) => `      ${after.replace(/^[^*]*/, "'$&'")}) next=(${listed(next)}) ;;`),
  "    esac ;;",
  "  esac"
]

const bash = (steps: ReadonlyArray<Step>, choices: ReadonlyMap<string, string>): ReadonlyArray<string> => [
  "_connected_payments() {",
  `  local before="\${COMP_WORDS[COMP_CWORD-1]}" after="\${COMP_WORDS[*]:1:COMP_CWORD-1}" next=()`,
  `  [ "$COMP_CWORD" -gt 3 ] && after="\${COMP_WORDS[*]:1:2}"`,
  ...cases(steps, choices, (next) => next.map(([word]) => word).join(" ")),
  `  COMPREPLY=($(compgen -W "\${next[*]}" -- "\${COMP_WORDS[COMP_CWORD]}"))`,
  "}",
  `complete -F _connected_payments ${programName}`
]

const zsh = (steps: ReadonlyArray<Step>, choices: ReadonlyMap<string, string>): ReadonlyArray<string> => [
  `#compdef ${programName}`,
  "_connected_payments() {",
  `  local before="\${words[CURRENT-1]}" after="\${(j: :)words[2,CURRENT-1]}"`,
  "  local -a next",
  `  (( CURRENT > 4 )) && after="\${(j: :)words[2,3]}"`,
  ...cases(steps, choices, (next) => next.map(([word, meaning]) => `'${word}:${meaning}'`).join(" ")),
  `  _describe ${programName} next`,
  "}",
  `compdef _connected_payments ${programName}`
]

const scripts = { sh: bash, bash, fish, zsh } satisfies Record<Shell, unknown>

export const completionScript = (commands: ReadonlyArray<Command>, shell: Shell): string => {
  const parameters = [...programOptions, ...commands.flatMap(({ parameters }) => parameters)]
  const choices = new Map(
    parameters
      .filter((one) => one.choices.length > 0 && !isArgument(one))
      .map(({ choices, name }) => [name, choices.join(" ")])
  )
  return scripts[shell](stepsOf(commands), choices).join("\n")
}
