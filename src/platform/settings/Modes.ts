import { Option, Redacted, Struct } from "effect"
import { definitions, type SettingsShape } from "./Definitions.ts"
import { secretKeyName } from "./ProviderCredentials.ts"
import type { Setting } from "./Setting.ts"

/** The requirements of a mode beyond the form of each setting: one line per problem, which names the setting. */

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

/** URLs that would send API keys, session cookies or mails with sign-in links unencrypted. */
const plainInProduction = ({ publicUrl, smtpUrl }: SettingsShape): ReadonlyArray<string> => [
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
export const modeProblems = (settings: SettingsShape): ReadonlyArray<string> => {
  const others = directAlone(settings)
  if (settings.mode === "production") return [...productionProblems(settings), ...others]
  return Option.isSome(settings.provider.production)
    ? [`${liveKey}: live keys are accepted with MODE=production only`, ...others]
    : others
}
