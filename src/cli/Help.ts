import { HelpDoc } from "@effect/cli"
import { version } from "../kit/Version.ts"
import { columns } from "./Output.ts"
import type { KnownCommand } from "./Synopsis.ts"

/** The program's name. */
export const programName = "connected-payments"

const notes = [
  "Commands work on the service's own settings: DATABASE_URL and the others. Without DATABASE_URL they use the service that runs on DATA_DIR, or start its embedded database for the time of the command.",
  "Exit codes: 0 done, 1 failed, 2 wrong usage. Failures are told on standard error."
]

const exampleOf = ({ command, example }: KnownCommand): string => `$ ${programName} ${command} ${example}`.trimEnd()

/** All commands or those of one noun, each in a line, with an example each. */
export const overview = (commands: ReadonlyArray<KnownCommand>): string =>
  [
    `${programName} ${version}`,
    `Usage: ${programName} <command> [options]`,
    `Commands:\n${columns(commands.map(({ command, summary }) => [`  ${command}`, summary]))}`,
    `Examples:\n${commands.map((command) => `  ${exampleOf(command)}`).join("\n")}`,
    "Options of every command: --help, --log-level LEVEL. Of the program: --version, --completions sh|bash|fish|zsh.",
    notes.join("\n")
  ].join("\n\n")

/** What follows the parser's own help of one command. */
export const helpFooter = (command: KnownCommand): HelpDoc.HelpDoc =>
  HelpDoc.blocks([
    HelpDoc.h1("EXAMPLE"),
    HelpDoc.p(exampleOf(command)),
    HelpDoc.h1("NOTES"),
    ...notes.map((note) => HelpDoc.p(note))
  ])
