import { Either, Option, Redacted } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { Environment } from "../kit/Environment.ts"
import { secret, secrets, text, validated } from "./Forms.ts"
import { combined, type Documented, group, optional, type Setting } from "./Setting.ts"

export interface ProviderCredentials {
  /**
   * The platform's secret key: `sk_test_`/`rk_test_` (`rkcs_test_` of a claimable one) in the sandbox,
   * `sk_live_`/`rk_live_` in production.
   */
  readonly secretKey: Redacted.Redacted
  /** Signing secrets of the provider's destinations, for snapshots and thin notifications; more during a rotation. */
  readonly webhookSecrets: NonEmptyReadonlyArray<Redacted.Redacted>
}

const prefixOf = (environment: Environment): string => `PROVIDER_${environment.toUpperCase()}`

/** The name of the setting that holds the platform's key in one environment. */
export const secretKeyName = (environment: Environment): string => `${prefixOf(environment)}_SECRET_KEY`

const webhookSecretsName = (environment: Environment): string => `${prefixOf(environment)}_WEBHOOK_SECRETS`

/** The id of the platform's OAuth application in one environment; absent: existing accounts can't be connected. */
export const oauthClientId = (environment: Environment): Setting<Option.Option<string>> =>
  optional(
    `${prefixOf(environment)}_OAUTH_CLIENT_ID`,
    validated(text, "must be the id of an OAuth application (ca_…)", (id) => /^ca_\w{1,64}$/.test(id)),
    {
      unset: environment === "sandbox" ? "none; the local emulator's own" : "none",
      about: `the platform's OAuth application in the provider's ${environment === "sandbox" ? "test" : "live"} mode: with it, organizations can also connect accounts that exist already; register \`PUBLIC_URL\` followed by \`/identity/account/oauth/return\` there as a redirect URL`
    }
  )

/** The credentials of one environment: both settings or neither. */
export const providerCredentials = (environment: Environment): Documented<Option.Option<ProviderCredentials>> => {
  const [providerMode, unset, only] =
    environment === "sandbox"
      ? (["test", "the local emulator", ""] as const)
      : (["live", "none", "; with `MODE=production` only, which needs these or the sandbox's"] as const)
  const keyForm = environment === "sandbox" ? /^(sk|rk|rkcs)_test_\w+$/ : /^(sk|rk)_live_\w+$/
  const secretKey = optional(
    secretKeyName(environment),
    // A live key for the sandbox would let sandbox calls act on production, so its form is refused
    secret(`must be a secret key of the provider's ${providerMode} mode`, (key) => keyForm.test(key)),
    { unset, about: `the platform's key in the provider's ${providerMode} mode${only}; set together with the next` }
  )
  const webhookSecrets = optional(
    webhookSecretsName(environment),
    // With quotes in a secret, for example, each of the provider's notifications would be refused
    secrets(
      "must be signing secrets of the provider (whsec_…), comma-separated, without spaces or quotes in them",
      (one) => /^whsec_[\w+/=-]+$/.test(one)
    ),
    {
      unset,
      about: `the signing secrets of the provider's notification endpoints in ${providerMode} mode, for snapshots and for thin notifications, comma-separated; old and new ones during a rotation`
    }
  )
  return combined(group({ secretKey, webhookSecrets }), (given) => {
    if (Option.isSome(given.secretKey) && Option.isSome(given.webhookSecrets)) {
      return Either.right(Option.some({ secretKey: given.secretKey.value, webhookSecrets: given.webhookSecrets.value }))
    }
    if (Option.isNone(given.secretKey) && Option.isNone(given.webhookSecrets)) {
      return Either.right(Option.none())
    }
    // One without the other is a mistake, never "not configured": that would start an emulator instead of using the
    // provider
    const { row } = Option.isNone(given.secretKey) ? secretKey : webhookSecrets
    return Either.left({ of: row, message: "is required if its counterpart is set" })
  })
}

interface OfBothEnvironments {
  readonly sandbox: Option.Option<ProviderCredentials>
  readonly production: Option.Option<ProviderCredentials>
}

/** Refuses a webhook secret in both environments: its notifications would all be taken for the sandbox's. */
export const withSecretsApart = <A extends OfBothEnvironments, F>(
  settings: Documented<A> & { readonly fields: F }
): Documented<A> & { readonly fields: F } =>
  Object.assign(
    combined(settings, (given) => {
      const [sandbox, production] = [given.sandbox, given.production].map(
        Option.match({
          onNone: (): ReadonlyArray<string> => [],
          onSome: ({ webhookSecrets }) => webhookSecrets.map(Redacted.value)
        })
      )
      return sandbox?.some((secret) => production?.includes(secret))
        ? Either.left({
            of: { name: webhookSecretsName("production") },
            message: `must not repeat a secret of ${webhookSecretsName("sandbox")}: each environment has its own`
          })
        : Either.right(given)
    }),
    { fields: settings.fields }
  )
