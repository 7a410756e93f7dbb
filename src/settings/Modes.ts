import { Option, Redacted } from "effect"
import type { TrustedProxies } from "./Forms.ts"

/** What a mode asks for beyond the form of each setting: a line for each problem, by the setting's name. */

/** The settings that a mode has a say in. */
export interface ModeSettings {
  readonly mode: "local" | "production"
  readonly publicUrl: Option.Option<string>
  readonly databaseUrl: Option.Option<unknown>
  readonly masterKeys: Option.Option<unknown>
  readonly checkoutSuccessUrl: Option.Option<unknown>
  readonly checkoutCancelUrl: Option.Option<unknown>
  readonly smtpUrl: Option.Option<Redacted.Redacted>
  readonly allowLocalDestinations: boolean
  readonly destinationNetworks: TrustedProxies
  readonly provider: Readonly<Record<"sandbox" | "production" | "apiUrl", Option.Option<unknown>>>
}

/** What is only for a developer's machine. */
const refusedInProduction = (settings: ModeSettings): ReadonlyArray<string> => [
  ...(settings.allowLocalDestinations
    ? ["ALLOW_LOCAL_DESTINATIONS: is for local development; it can't be on with MODE=production"]
    : []),
  ...(settings.destinationNetworks.rules.length > 0
    ? ["ALLOWED_DESTINATION_NETWORKS: is for local development; it can't be set with MODE=production"]
    : []),
  ...(Option.isSome(settings.provider.apiUrl)
    ? ["PROVIDER_API_URL: is for emulators; it can't be set with MODE=production"]
    : [])
]

/** Options of the mail client, in the URL's query, by which a connection could stay plain or meet an impostor. */
const weakensTls = /[?&](?:ignoreTLS|requireTLS|opportunisticTLS|secure|tls\.[^=&]*)=/i

/** The query of a URL with its escapes resolved, as the mail client reads it. */
const queryOf = (url: string): string => `?${new URLSearchParams(/\?.*/.exec(url)?.[0] ?? "").toString()}`

/** API keys and session cookies, and mails that sign their readers in, travel encrypted or not at all. */
const plainInProduction = ({ publicUrl, smtpUrl }: ModeSettings): ReadonlyArray<string> => [
  ...(Option.exists(publicUrl, (url) => !url.startsWith("https://"))
    ? ["PUBLIC_URL: must start with https:// with MODE=production"]
    : []),
  ...(Option.exists(smtpUrl, (url) => weakensTls.test(queryOf(Redacted.value(url))))
    ? ["SMTP_URL: can't have options that change its TLS with MODE=production; smtps:// is TLS, and smtp:// STARTTLS"]
    : [])
]

const productionProblems = (settings: ModeSettings): ReadonlyArray<string> => {
  const required: ReadonlyArray<readonly [name: string, value: Option.Option<unknown>]> = [
    ["DATABASE_URL", settings.databaseUrl],
    ["MASTER_KEYS", settings.masterKeys],
    ["PUBLIC_URL", settings.publicUrl],
    ["CHECKOUT_SUCCESS_URL", settings.checkoutSuccessUrl],
    ["CHECKOUT_CANCEL_URL", settings.checkoutCancelUrl],
    ["SMTP_URL", settings.smtpUrl]
  ]
  const missing = required.flatMap(([name, value]) =>
    Option.isNone(value) ? [`${name}: is required with MODE=production`] : []
  )
  const provider =
    Option.isNone(settings.provider.sandbox) && Option.isNone(settings.provider.production)
      ? [
          "PROVIDER_PRODUCTION_SECRET_KEY: the provider's keys are required with MODE=production; no emulator is started"
        ]
      : []
  return [...missing, ...provider, ...refusedInProduction(settings), ...plainInProduction(settings)]
}

/** What is wrong with settings that are each of the right form, in the mode that they are for. */
export const modeProblems = (settings: ModeSettings): ReadonlyArray<string> => {
  if (settings.mode === "production") return productionProblems(settings)
  return Option.isSome(settings.provider.production)
    ? ["PROVIDER_PRODUCTION_SECRET_KEY: live keys are taken with MODE=production only"]
    : []
}
