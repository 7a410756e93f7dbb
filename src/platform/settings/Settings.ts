import { type Config, type ConfigError, Data, Effect, type LogLevel } from "effect"
import { logDefinitions, type SettingsShape, settings } from "./Definitions.ts"
import { modeProblems } from "./Modes.ts"

export type { SettingsShape } from "./Definitions.ts"
export type { ImageStoreSettings } from "./ImageStoreSettings.ts"
export type { MasterKey } from "./MasterKeys.ts"
export type { ProviderCredentials } from "./ProviderCredentials.ts"

/**
 * The settings of the service, read once from the environment. `Definitions.ts` defines them.
 *
 * An invalid setting fails with a `SettingsError` that names it. Absent settings with a local default (the database,
 * the provider, the master key) are filled in by `app/local/Local.ts`; `MODE=production` refuses those defaults.
 */

/** A setting is missing or wrong; the message names each, for the operator. */
export class SettingsError extends Data.TaggedError("SettingsError")<{ readonly message: string }> {}

/** The problems, one line for each setting, by its name. */
const describe = (error: ConfigError.ConfigError): ReadonlyArray<string> => {
  switch (error._op) {
    case "And":
    case "Or":
      return [...describe(error.left), ...describe(error.right)]
    default:
      // Names are flat: a path has one part
      return [`${error.path.at(-1) ?? ""}: ${error.message}`]
  }
}

const read = <A>(config: Config.Config<A>): Effect.Effect<A, SettingsError> =>
  Effect.mapError(config, (error) => new SettingsError({ message: describe(error).join("\n") }))

/** `LOG_LEVEL`: the lowest level that is logged. */
export const logLevel: Effect.Effect<LogLevel.LogLevel, SettingsError> = read(logDefinitions.level)

/** `LOG_REQUESTS`: whether there is a line for each request. */
export const logRequests: Effect.Effect<boolean, SettingsError> = read(logDefinitions.requests)

/** The settings of this process, from the current `ConfigProvider` (the environment variables by default). */
export const readSettings: Effect.Effect<SettingsShape, SettingsError> = read<SettingsShape>(settings).pipe(
  Effect.filterOrElse(
    (complete) => modeProblems(complete).length === 0,
    (complete) => new SettingsError({ message: modeProblems(complete).join("\n") })
  )
)
