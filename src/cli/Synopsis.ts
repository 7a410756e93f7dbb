import { stripVTControlCharacters } from "node:util"
import { CliConfig, Command, HelpDoc, Usage } from "@effect/cli"

/** A command as the help shows it. */
export interface Synopsis {
  /** Such as `keys create`. */
  readonly command: string
  /** One sentence. */
  readonly summary: string
  /** The arguments of its example. */
  readonly example: string
}

/** A synopsis with the options of the command, such as `--json`. */
export interface KnownCommand extends Synopsis {
  readonly options: ReadonlySet<string>
  /** The whole command with its options and the forms of their values, in one line. */
  readonly usage: string
  /** The parser's own help: what the command does, its arguments and its options. */
  readonly details: HelpDoc.HelpDoc
}

/** The organization's id in examples. */
export const exampleOrganization = "0198c3a2-5c4e-7b1f-9d3a-2f6e8b7c1d40"

/** Gives a command its description, and lists it for the help and the check of the command line. */
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
      // The parser knows only the last word of a command
      usage: [...noun, usage].join(" "),
      details: Command.getHelp(command, CliConfig.make({ showBuiltIns: false, isCaseSensitive: true }))
    }
  }
}
