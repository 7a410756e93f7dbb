import { Config, ConfigError, Data, Effect, Either, Redacted } from "effect"
import { definitions } from "../../settings/Definitions.ts"
import { cellNameForm } from "../Directory.ts"

/** The settings of `organizations move`. It belongs to no cell, and needs none of a cell's other settings. */

/** A setting is missing or wrong; the message names it. Never holds a URL, which has a password in it. */
export class MoveSettingsError extends Data.TaggedError("MoveSettingsError")<{ readonly message: string }> {}

const isPostgresUrl = (url: string): boolean => /^postgres(ql)?:\/\//.test(url) && URL.canParse(url)

/** `name=postgresql://…`, comma-separated, each name once. A comma in a URL has to be written as %2C. */
const parseCells = (text: Redacted.Redacted): Either.Either<ReadonlyMap<string, Redacted.Redacted>, string> => {
  const cells = new Map<string, Redacted.Redacted>()
  for (const part of Redacted.value(text).split(",")) {
    const at = part.indexOf("=")
    const [name, url] = [part.slice(0, at).trim(), part.slice(at + 1).trim()]
    if (at < 0 || !cellNameForm.test(name) || !isPostgresUrl(url)) {
      return Either.left("must be a list of <cell>=<postgresql:// URL>, comma-separated")
    }
    if (cells.has(name)) return Either.left(`must name each cell once: ${name} is there twice`)
    cells.set(name, Redacted.make(url))
  }
  return Either.right(cells)
}

const settings = Config.all({
  directoryUrl: Config.redacted("DIRECTORY_URL").pipe(
    Config.validate({
      message: "must be a postgresql:// URL",
      validation: (url) => isPostgresUrl(Redacted.value(url))
    })
  ),
  cells: Config.redacted("CELL_DATABASE_URLS").pipe(
    Config.mapOrFail((text) =>
      Either.mapLeft(parseCells(text), (message) => ConfigError.InvalidData(["CELL_DATABASE_URLS"], message))
    )
  ),
  masterKeys: definitions.masterKeys
})

const describe = (error: ConfigError.ConfigError): ReadonlyArray<string> =>
  error._op === "And" || error._op === "Or"
    ? [...describe(error.left), ...describe(error.right)]
    : [`${error.path.at(-1) ?? ""}: ${error._op === "MissingData" ? "is not set" : error.message}`]

/** `DIRECTORY_URL`; `CELL_DATABASE_URLS`, the databases of both cells by name; and the target's `MASTER_KEYS`. */
export const readMoveSettings: Effect.Effect<
  Config.Config.Success<typeof settings>,
  MoveSettingsError
> = Effect.mapError(settings, (error) => new MoveSettingsError({ message: describe(error).join("\n") }))
