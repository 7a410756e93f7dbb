import { stripVTControlCharacters } from "node:util"
import { CliConfig, Command, HelpDoc, Usage } from "@effect/cli"

/** A command as the help shows it. */
export interface Synopsis {
  /** Such as `keys create`. */
  readonly command: string
  /** One sentence. */
  readonly summary: string
  /** What follows the command in its example. */
  readonly example: string
}

/** A synopsis with the options that the command takes, such as `--json`. */
export interface KnownCommand extends Synopsis {
  readonly options: ReadonlySet<string>
  /** The whole command with its options and the forms of their values, in a line. */
  readonly usage: string
  /** The parser's own help: what the command does, its arguments and its options. */
  readonly details: HelpDoc.HelpDoc
}

/** Stands for an organization's id in examples. */
export const exampleOrganization = "0198c3a2-5c4e-7b1f-9d3a-2f6e8b7c1d40"

/** Gives a command its description, and makes it known to the help and to the check of the command line. */
export const described = <Name extends string, R, E, A>(
  self: Command.Command<Name, R, E, A>,
  synopsis: Synopsis
): { readonly command: Command.Command<Name, R, E, A>; readonly known: KnownCommand } => {
  const command = Command.withDescription(self, synopsis.summary)
  const usage = stripVTControlCharacters(HelpDoc.toAnsiText(Usage.getHelp(Command.getUsage(self)))).trim()
  const noun = synopsis.command.split(" ").slice(0, -1)
  return {
    command,
    known: {
      ...synopsis,
      options: new Set(usage.match(/--[a-z][a-z-]*/g)),
      // The parser knows a command by its last word alone
      usage: [...noun, usage].join(" "),
      details: Command.getHelp(command, CliConfig.make({ showBuiltIns: false, isCaseSensitive: true }))
    }
  }
}
