import { HelpDoc } from "@effect/cli"
import { version } from "../settings/Version.ts"
import { columns } from "./Output.ts"
import type { KnownCommand } from "./Synopsis.ts"

/** The program's name. */
export const programName = "connected-payments"

const notes = [
  "Commands work on the service's own settings: DATABASE_URL and the others. Without DATABASE_URL they use the service that runs on DATA_DIR, or start its embedded database for the duration of the command. `listen`, `trigger` and `mcp` need only the URL of a running service and an API key.",
  "Exit codes: 0 done, 1 failed, 2 wrong usage. Failures are printed to standard error."
]

const exampleOf = ({ command, example }: KnownCommand): string => `$ ${programName} ${command} ${example}`.trimEnd()

/** The help for all commands or those of one noun: a line and an example for each. */
export const overview = (commands: ReadonlyArray<KnownCommand>): string =>
  [
    `${programName} ${version}`,
    `Usage: ${programName} <command> [options]`,
    `Commands:\n${columns(commands.map(({ command, summary }) => [`  ${command}`, summary]))}`,
    `Examples:\n${commands.map((command) => `  ${exampleOf(command)}`).join("\n")}`,
    "Options of every command: --help, --log-level LEVEL. Of the program: --version, --completions sh|bash|fish|zsh.",
    notes.join("\n")
  ].join("\n\n")

/** The parser's description of a value whose form the option's line already names. */
const formless = /^ *A (?:user-defined piece of text|true or false value)\.\n\n/gm

/** The choices of an option, as the parser writes them: they look as if the pipe separated options. */
const choices = /(--[a-z-]+ )(\w+(?: \| \w+)+)/g

/** The help for one command: its usage, its options with the forms of their values, and an example. */
export const commandHelp = (command: KnownCommand): string =>
  HelpDoc.toAnsiText(
    HelpDoc.blocks([
      HelpDoc.p(`${programName} ${version}`),
      HelpDoc.h1("USAGE"),
      HelpDoc.p(`$ ${programName} ${command.usage}`),
      command.details,
      HelpDoc.h1("EXAMPLE"),
      HelpDoc.p(exampleOf(command)),
      HelpDoc.h1("NOTES"),
      ...notes.map((note) => HelpDoc.p(note))
    ])
  )
    .replaceAll(formless, "")
    .replaceAll(choices, (_, option: string, words: string) => `${option}<${words.replaceAll(" | ", "|")}>`)
