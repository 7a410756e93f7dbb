import { Array, type Config, type ConfigError, Data, Effect, type LogLevel, Option, Redacted, Struct } from "effect"
import { misspelt } from "../bounds/Reasons.ts"
import { isPlainToOthers } from "./DatabaseUrl.ts"
import { definitions, logDefinitions, type SettingsShape, settingRows, settings } from "./Definitions.ts"
import { exporterRows, headerSettings } from "./ExportSettings.ts"
import { secretKeyName } from "./ProviderCredentials.ts"
import type { Setting } from "./Setting.ts"

export type { MasterKey, SettingsShape } from "./Definitions.ts"
export type { ImageStoreSettings } from "./ImageStoreSettings.ts"
export type { ProviderCredentials } from "./ProviderCredentials.ts"

/**
 * The settings of the service, read once from the environment. `Definitions.ts` defines them.
 *
 * An invalid setting fails with a `SettingsError` that names it. Absent settings with a local default (the database,
 * the provider, the master key) are filled in by `app/local/Local.ts`; `MODE=production` refuses those defaults.
 */

const problem = ({ row }: Pick<Setting<unknown>, "row">, message: string): string => `${row.name}: ${message}`

const missingInProduction = (settings: SettingsShape): ReadonlyArray<string> =>
  Struct.keys(definitions).flatMap((key) => {
    const value: unknown = settings[key]
    return Option.isOption(value) && Option.isNone(value)
      ? definitions[key].rows
          .filter(({ production }) => production === "required")
          .map((row) => problem({ row }, "is required with MODE=production"))
      : []
  })

/** Settings that are only for a developer's machine. */
const refusedInProduction = (settings: SettingsShape): ReadonlyArray<string> => {
  const { allowLocalDestinations, destinationNetworks, provider } = definitions
  return [
    ...(settings.allowLocalDestinations
      ? [problem(allowLocalDestinations, "is for local development; it can't be on with MODE=production")]
      : []),
    ...(settings.destinationNetworks.rules.length > 0
      ? [problem(destinationNetworks, "is for local development; it can't be set with MODE=production")]
      : []),
    ...(Option.isSome(settings.provider.apiUrl)
      ? [problem(provider.fields.apiUrl, "is for emulators; it can't be set with MODE=production")]
      : [])
  ]
}

/** Options of the mail client, in the URL's query, that could leave a connection plain or its server unverified. */
const weakensTls = /[?&](?:ignoreTLS|requireTLS|opportunisticTLS|secure|tls\.[^=&]*)=/i

/** The query of a URL with its escapes resolved, as the mail client reads it. */
const queryOf = (url: string): string => `?${new URLSearchParams(/\?.*/.exec(url)?.[0] ?? "").toString()}`

/** URLs that would send API keys, session cookies, mails with sign-in links or data unencrypted. */
const plainInProduction = ({ publicUrl, smtpUrl, ...settings }: SettingsShape): ReadonlyArray<string> => [
  ...(["databaseUrl", "databaseDirectUrl", "databaseReadUrl"] as const).flatMap((name) =>
    Option.exists(settings[name], (url) => isPlainToOthers(Redacted.value(url)))
      ? [
          problem(
            definitions[name],
            "must have sslmode=verify-full with MODE=production, or at least require: without it, connections are not encrypted"
          )
        ]
      : []
  ),
  ...(Option.exists(publicUrl, (url) => !url.startsWith("https://"))
    ? [problem(definitions.publicUrl, "must start with https:// with MODE=production")]
    : []),
  ...(Option.exists(smtpUrl, (url) => weakensTls.test(queryOf(Redacted.value(url))))
    ? [
        problem(
          definitions.smtpUrl,
          "can't have options that change its TLS with MODE=production; smtps:// is TLS, and smtp:// STARTTLS"
        )
      ]
    : [])
]

const liveKey = secretKeyName("production")

const productionProblems = (settings: SettingsShape): ReadonlyArray<string> => {
  const { production, sandbox } = settings.provider
  return [
    ...missingInProduction(settings),
    ...(Option.isNone(sandbox) && Option.isNone(production)
      ? [`${liveKey}: this or ${secretKeyName("sandbox")} is required with MODE=production; no emulator is started`]
      : []),
    ...refusedInProduction(settings),
    ...plainInProduction(settings)
  ]
}

/** A direct address (`DATABASE_DIRECT_URL`) without the database's own (`DATABASE_URL`). */
const directAlone = ({ databaseDirectUrl, databaseUrl }: SettingsShape): ReadonlyArray<string> =>
  Option.isSome(databaseDirectUrl) && Option.isNone(databaseUrl)
    ? [problem(definitions.databaseDirectUrl, "needs DATABASE_URL, of which it is the direct address")]
    : []

/** The problems of settings in their mode, although each has the right form. */
const modeProblems = (settings: SettingsShape): ReadonlyArray<string> => {
  const others = directAlone(settings)
  if (settings.mode === "production") return [...productionProblems(settings), ...others]
  return Option.isSome(settings.provider.production)
    ? [`${liveKey}: live keys are accepted with MODE=production only`, ...others]
    : others
}

/** A setting is missing or wrong; the message names each, for the operator. */
export class SettingsError extends Data.TaggedError("SettingsError")<{ readonly message: string }> {}

/** The problems, one line for each setting, by its name. */
const describe = (error: ConfigError.ConfigError): ReadonlyArray<string> => {
  switch (error._op) {
    case "Or":
      // A secret that is not set, and the file with it
      return describe(error.right)
    case "And":
      return [...describe(error.left), ...describe(error.right)]
    default:
      // Names are flat: a path has one part
      return [`${error.path.at(-1) ?? ""}: ${error.message}`]
  }
}

const read = <A>(config: Config.Config<A>): Effect.Effect<A, SettingsError> =>
  Effect.mapError(config, (error) => new SettingsError({ message: describe(error).join("\n") }))

/** Names that are shorter may resemble anything: `NODE` is not `MODE`. */
const shortestMisspelt = 6

/** Says which variables of the environment are no settings but resemble one: they change nothing. */
export const misspeltSettings = (names: ReadonlyArray<string>): ReadonlyArray<string> => {
  const known = [...settingRows, ...exporterRows].flatMap(({ file, name }) =>
    file === undefined ? [name] : [name, file]
  )
  const long = known.filter(({ length }) => length >= shortestMisspelt)
  return names
    .filter((name) => name.length >= shortestMisspelt && !known.includes(name))
    .flatMap((name) => {
      const meant = misspelt(name, long)
      return meant === undefined ? [] : [`${name} is not a setting, and changes nothing: did you mean ${meant}?`]
    })
}

export const logLevel: Effect.Effect<LogLevel.LogLevel, SettingsError> = read(logDefinitions.level)

export const logRequests: Effect.Effect<boolean, SettingsError> = read(logDefinitions.requests)

/** The headers of exports that are set, by the variables' names. */
export const exporterHeaders = Effect.map(
  Effect.forEach(headerSettings, (header) =>
    Effect.map(read(header), (value) => Option.map(value, (text) => [header.row.name, text] as const))
  ),
  Array.getSomes
)

/** The settings of this process, from the current `ConfigProvider` (the environment variables by default). */
export const readSettings: Effect.Effect<SettingsShape, SettingsError> = read<SettingsShape>(settings).pipe(
  Effect.filterOrElse(
    (complete) => modeProblems(complete).length === 0,
    (complete) => new SettingsError({ message: modeProblems(complete).join("\n") })
  )
)
