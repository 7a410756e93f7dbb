import { BlockList } from "node:net"
import {
  Array as Arr,
  Config,
  ConfigError,
  Context,
  Data,
  type Duration,
  Effect,
  Either,
  Layer,
  LogLevel,
  Option,
  Redacted
} from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { Environment } from "../events/Environment.ts"
import {
  describe,
  durationAbove,
  httpUrl,
  intBetween,
  nonEmpty,
  optional,
  privateNetworks,
  type TrustedProxies,
  trustedProxies,
  validated
} from "./Forms.ts"
import { type HttpSettings, httpSettings } from "./HttpSettings.ts"
import { modeProblems } from "./Modes.ts"

/**
 * Every setting of the service, read once from the environment, typed; secrets are `Redacted`.
 *
 * A wrong setting stops the start with a `SettingsError` that names it. What is absent here and has a local default (the
 * database, the provider, the master key) is filled in by `Local.ts`; `MODE=production` refuses those defaults.
 */

/** How the service speaks to the provider in one environment. */
export interface ProviderCredentials {
  /** The platform's secret key: `sk_test_`/`rk_test_` in the sandbox, `sk_live_`/`rk_live_` in production. */
  readonly secretKey: Redacted.Redacted
  /** Signing secrets of the provider's destinations, snapshots' and thin notifications'; more while one is rotated. */
  readonly webhookSecrets: NonEmptyReadonlyArray<Redacted.Redacted>
}

/** A key that encrypts signing secrets at rest: its id is stored with each ciphertext. */
export interface MasterKey {
  readonly id: string
  /** 32 bytes. */
  readonly key: Redacted.Redacted<Uint8Array>
}

/** A bucket of an S3-compatible store, where product images are kept. */
export interface ImageStoreSettings {
  /** The bucket, with the beginning of the keys where they have one: `https://s3.eu-central-1.amazonaws.com/bucket/shop`. */
  readonly url: URL
  readonly region: string
  readonly accessKeyId: string
  readonly secretAccessKey: Redacted.Redacted
}

export interface SettingsShape {
  /** `local` starts what is missing by itself; `production` refuses to. */
  readonly mode: "local" | "production"
  readonly host: string
  /** 0 picks a free port. */
  readonly port: number
  /** Where integrators reach the service, without a trailing slash. Default: made of host and port. */
  readonly publicUrl: Option.Option<string>
  readonly roles: { readonly api: boolean; readonly worker: boolean }
  readonly http: HttpSettings
  /** How long a shutdown waits for requests and attempts that are under way. */
  readonly shutdownTimeout: Duration.Duration
  /** Where local defaults keep their data. */
  readonly dataDirectory: string
  readonly databaseUrl: Option.Option<Redacted.Redacted>
  readonly databasePoolSize: number
  readonly provider: {
    readonly sandbox: Option.Option<ProviderCredentials>
    readonly production: Option.Option<ProviderCredentials>
    /** Another address of the provider's API: an emulator's. */
    readonly apiUrl: Option.Option<URL>
    /** Where the local emulator listens. Port 0 keeps the one it had before, or picks a free one. */
    readonly emulatorHost: string
    readonly emulatorPort: number
    /** Connected account that the local organization is linked to, where no emulator is started. */
    readonly localAccountId: Option.Option<string>
    /** For a whole call to the provider, repeats included. */
    readonly timeout: Duration.Duration
    /** Calls at once per connected account and process. */
    readonly concurrencyPerAccount: number
  }
  /** Where the payer's browser goes after checkout (contract 4.3). */
  readonly checkoutSuccessUrl: Option.Option<string>
  readonly checkoutCancelUrl: Option.Option<string>
  /** Where product images are kept; absent: in the database. */
  readonly imageStore: Option.Option<ImageStoreSettings>
  /** The first encrypts; all decrypt. */
  readonly masterKeys: Option.Option<NonEmptyReadonlyArray<MasterKey>>
  /** Loopback and plain HTTP destinations, in the sandbox only. */
  readonly allowLocalDestinations: boolean
  /** Private networks that destinations may be in, in the sandbox only; empty: none. */
  readonly destinationNetworks: TrustedProxies
  /** Endpoints per organization and environment. */
  readonly endpointLimit: number
  /** Megabytes of product images that an organization may upload within an hour, per environment. */
  readonly imageMegabytesPerHour: number
  /** Requests per minute and credential (contract 3.7). */
  readonly rateLimitPerMinute: number
  /** Failed authentications and sign-in requests per minute and client address. */
  readonly failedAuthenticationsPerMinute: number
  /** Proxies whose `X-Forwarded-For` is believed. */
  readonly trustedProxies: TrustedProxies
  /** Callers whose traces those of their requests continue. */
  readonly trustedTraceParents: TrustedProxies
  /** Origins, beside the service's own, whose pages may change things in a signed-in person's name. */
  readonly trustedOrigins: ReadonlyArray<string>
  /** Where mail is sent from; without it links go to the console, in `local` mode only. */
  readonly smtpUrl: Option.Option<Redacted.Redacted>
  /** The sender of mail. */
  readonly mailFrom: string
  /** How long receipts of the provider's notifications are kept. */
  readonly receiptRetention: Duration.Duration
  /** How long the audit log is kept. */
  readonly auditRetention: Duration.Duration
  readonly delivery: {
    /** For the whole exchange of one attempt. */
    readonly timeout: Duration.Duration
    /** How long a claimed delivery stays claimed beyond the time-out, before others may take it. */
    readonly leaseMargin: Duration.Duration
    /** Attempts in flight per process. */
    readonly concurrency: number
    /** Attempts in flight per endpoint and process. */
    readonly concurrencyPerEndpoint: number
    /** How often a process looks for due deliveries when nothing wakes it. */
    readonly pollInterval: Duration.Duration
    /** How long finished deliveries and payloads are kept. */
    readonly retention: Duration.Duration
  }
}

/** A setting is missing or wrong; the message names each one, for the operator. */
export class SettingsError extends Data.TaggedError("SettingsError")<{ readonly message: string }> {}

const isPostgresUrl = (text: string): boolean => /^postgres(ql)?:\/\//.test(text) && URL.canParse(text)

const credentials = (environment: Environment): Config.Config<Option.Option<ProviderCredentials>> => {
  const prefix = `PROVIDER_${environment.toUpperCase()}`
  const keyForm = environment === "sandbox" ? /^(sk|rk)_test_\w+$/ : /^(sk|rk)_live_\w+$/
  return Config.all({
    // A live key in the sandbox's place would let sandbox calls touch production: refused by its form
    secretKey: optional(
      Config.redacted(`${prefix}_SECRET_KEY`).pipe(
        validated(
          `${prefix}_SECRET_KEY`,
          `must be a secret key of the provider's ${environment === "sandbox" ? "test" : "live"} mode`,
          (key) => keyForm.test(Redacted.value(key))
        )
      )
    ),
    webhookSecrets: optional(
      Config.redacted(`${prefix}_WEBHOOK_SECRETS`).pipe(
        Config.mapOrFail((value) => {
          const secrets = Redacted.value(value)
            .split(",")
            .map((secret) => secret.trim())
            .filter((secret) => secret !== "")
            .map((secret) => Redacted.make(secret))
          return Arr.isNonEmptyReadonlyArray(secrets)
            ? Either.right(secrets)
            : Either.left(ConfigError.InvalidData([`${prefix}_WEBHOOK_SECRETS`], "must name at least one secret"))
        })
      )
    )
  }).pipe(
    // One without the other is a mistake, never "not configured": that would start an emulator in the provider's place
    Config.mapOrFail(({ secretKey, webhookSecrets }) => {
      if (Option.isSome(secretKey) && Option.isSome(webhookSecrets)) {
        return Either.right(Option.some({ secretKey: secretKey.value, webhookSecrets: webhookSecrets.value }))
      }
      if (Option.isNone(secretKey) && Option.isNone(webhookSecrets)) {
        return Either.right(Option.none())
      }
      const missing = Option.isNone(secretKey) ? `${prefix}_SECRET_KEY` : `${prefix}_WEBHOOK_SECRETS`
      return Either.left(ConfigError.InvalidData([missing], "is required where its counterpart is set"))
    })
  )
}

const imageStore: Config.Config<Option.Option<ImageStoreSettings>> = optional(
  httpUrl("IMAGE_STORE_URL").pipe(
    validated("IMAGE_STORE_URL", "must be a bucket's URL without credentials or a query", (url) =>
      [url.username, url.password, url.search, url.hash].every((part) => part === "")
    )
  )
).pipe(
  Config.zip(
    Config.all({
      region: nonEmpty("IMAGE_STORE_REGION").pipe(Config.withDefault("us-east-1")),
      accessKeyId: optional(nonEmpty("IMAGE_STORE_ACCESS_KEY_ID")),
      secretAccessKey: optional(Config.redacted("IMAGE_STORE_SECRET_ACCESS_KEY"))
    })
  ),
  Config.mapOrFail(([url, { accessKeyId, region, secretAccessKey }]) => {
    const parts = {
      IMAGE_STORE_URL: url,
      IMAGE_STORE_ACCESS_KEY_ID: accessKeyId,
      IMAGE_STORE_SECRET_ACCESS_KEY: secretAccessKey
    }
    const missing = Object.entries<Option.Option<unknown>>(parts).flatMap(([name, value]) =>
      Option.isNone(value) ? [name] : []
    )
    // Some without the others is a mistake, never "keep them in the database"
    return missing.length > 0 && missing.length < 3
      ? Either.left(ConfigError.InvalidData(missing.slice(0, 1), "is required where its counterparts are set"))
      : Either.right(
          Option.map(Option.all({ url, accessKeyId, secretAccessKey }), (complete) => ({ ...complete, region }))
        )
  })
)

const parseMasterKeys = (text: string): Either.Either<NonEmptyReadonlyArray<MasterKey>, string> => {
  const keys: Array<MasterKey> = []
  for (const part of text.split(",")) {
    const [id, encoded, ...rest] = part.trim().split(":")
    const bytes = Buffer.from(encoded ?? "", "base64")
    if (id === undefined || !/^[A-Za-z0-9_-]{1,32}$/.test(id) || rest.length > 0 || bytes.length !== 32) {
      return Either.left("must be a list of <id>:<base64 of 32 bytes>, comma-separated, the current key first")
    }
    keys.push({ id, key: Redacted.make(new Uint8Array(bytes)) })
  }
  const [first, ...others] = keys
  return first === undefined || new Set(keys.map((key) => key.id)).size !== keys.length
    ? Either.left("must name each key id once")
    : Either.right([first, ...others])
}

const masterKeys = optional(
  Config.redacted("MASTER_KEYS").pipe(
    Config.mapOrFail((value) =>
      Either.mapLeft(parseMasterKeys(Redacted.value(value)), (message) =>
        ConfigError.InvalidData(["MASTER_KEYS"], message)
      )
    )
  )
)

const roles = Config.literal(
  "all",
  "api",
  "worker"
)("ROLES").pipe(
  Config.withDefault("all" as const),
  Config.map((role) => ({ api: role !== "worker", worker: role !== "api" }))
)

const fromEnvironment: Config.Config<SettingsShape> = Config.literal(
  "local",
  "production"
)("MODE").pipe(
  Config.withDefault("local" as const),
  Config.zip(
    Config.all({
      host: nonEmpty("HOST").pipe(Config.withDefault("127.0.0.1")),
      port: intBetween("PORT", 0, 65_535, 8080),
      publicUrl: optional(httpUrl("PUBLIC_URL").pipe(Config.map((url) => url.href.replace(/\/+$/, "")))),
      roles,
      http: httpSettings,
      shutdownTimeout: durationAbove("SHUTDOWN_TIMEOUT", "100 millis", "5 seconds"),
      dataDirectory: nonEmpty("DATA_DIR").pipe(Config.withDefault(".data")),
      databaseUrl: optional(
        Config.redacted("DATABASE_URL").pipe(
          // An empty one would have the client fall back to whatever server it finds on this machine
          validated("DATABASE_URL", "must be a postgresql:// URL", (url) => isPostgresUrl(Redacted.value(url)))
        )
      ),
      databasePoolSize: intBetween("DATABASE_POOL_SIZE", 2, 500, 10),
      provider: Config.all({
        sandbox: credentials("sandbox"),
        production: credentials("production"),
        apiUrl: optional(httpUrl("PROVIDER_API_URL")),
        emulatorHost: nonEmpty("EMULATOR_HOST").pipe(Config.withDefault("127.0.0.1")),
        emulatorPort: intBetween("EMULATOR_PORT", 0, 65_535, 0),
        localAccountId: optional(
          nonEmpty("LOCAL_ACCOUNT_ID").pipe(
            validated("LOCAL_ACCOUNT_ID", "must be an id acct_…", (id) => /^acct_\w{1,64}$/.test(id))
          )
        ),
        timeout: durationAbove("PROVIDER_TIMEOUT", "1 second", "30 seconds"),
        concurrencyPerAccount: intBetween("PROVIDER_CONCURRENCY_PER_ACCOUNT", 1, 1000, 20)
      }),
      checkoutSuccessUrl: optional(httpUrl("CHECKOUT_SUCCESS_URL").pipe(Config.map(urlTemplate))),
      checkoutCancelUrl: optional(httpUrl("CHECKOUT_CANCEL_URL").pipe(Config.map(urlTemplate))),
      imageStore,
      masterKeys,
      allowLocalDestinations: optional(Config.boolean("ALLOW_LOCAL_DESTINATIONS")),
      destinationNetworks: privateNetworks("ALLOWED_DESTINATION_NETWORKS").pipe(Config.withDefault(new BlockList())),
      endpointLimit: intBetween("ENDPOINT_LIMIT", 1, 1000, 16),
      imageMegabytesPerHour: intBetween("IMAGE_MEGABYTES_PER_HOUR", 5, 1_000_000, 250),
      rateLimitPerMinute: intBetween("RATE_LIMIT_PER_MINUTE", 1, 100_000_000, 600),
      failedAuthenticationsPerMinute: intBetween("FAILED_AUTHENTICATIONS_PER_MINUTE", 1, 1_000_000, 60),
      trustedProxies: trustedProxies("TRUSTED_PROXIES").pipe(Config.withDefault(new BlockList())),
      trustedTraceParents: trustedProxies("TRUSTED_TRACE_PARENTS").pipe(Config.withDefault(new BlockList())),
      trustedOrigins: nonEmpty("TRUSTED_ORIGINS").pipe(
        Config.mapOrFail((text) => {
          const origins = text.split(",").map((origin) => origin.trim())
          return origins.every((origin) => URL.canParse(origin) && new URL(origin).origin === origin)
            ? Either.right(origins)
            : Either.left(
                ConfigError.InvalidData(["TRUSTED_ORIGINS"], "must be a list of origins, e.g. https://app.example")
              )
        }),
        Config.withDefault([])
      ),
      smtpUrl: optional(
        Config.redacted("SMTP_URL").pipe(
          validated("SMTP_URL", "must be an smtp:// or smtps:// URL", (url) =>
            /^smtps?:\/\/\S+$/.test(Redacted.value(url))
          )
        )
      ),
      mailFrom: nonEmpty("MAIL_FROM").pipe(Config.withDefault("connected-payments <no-reply@localhost>")),
      // The provider can repeat a notification for 30 days, and its receipt is what tells that it is known
      receiptRetention: durationAbove("RECEIPT_RETENTION", "30 days", "400 days"),
      auditRetention: durationAbove("AUDIT_RETENTION", "1 day", "730 days"),
      delivery: Config.all({
        timeout: durationAbove("DELIVERY_TIMEOUT", "100 millis", "10 seconds"),
        leaseMargin: durationAbove("DELIVERY_LEASE_MARGIN", "1 second", "5 seconds"),
        concurrency: intBetween("DELIVERY_CONCURRENCY", 1, 10_000, 256),
        concurrencyPerEndpoint: intBetween("DELIVERY_CONCURRENCY_PER_ENDPOINT", 1, 1000, 16),
        pollInterval: durationAbove("DELIVERY_POLL_INTERVAL", "10 millis", "1 second"),
        retention: durationAbove("DELIVERY_RETENTION", "4 days", "30 days")
      })
    })
  ),
  Config.map(([mode, rest]) => ({
    ...rest,
    mode,
    allowLocalDestinations: Option.getOrElse(rest.allowLocalDestinations, () => mode === "local")
  }))
)

/** The provider replaces this marker by the session's id; URL parsing would have escaped its braces. */
function urlTemplate(url: URL): string {
  return url.href.replaceAll("%7BCHECKOUT_SESSION_ID%7D", "{CHECKOUT_SESSION_ID}")
}

/** `LOG_LEVEL`: the least that is logged; read by itself, so that a wrong setting elsewhere is still logged. */
export const logLevel: Effect.Effect<LogLevel.LogLevel, SettingsError> = Config.logLevel("LOG_LEVEL").pipe(
  Config.withDefault(LogLevel.Info),
  Effect.mapError((error) => new SettingsError({ message: describe(error).join("\n") }))
)

/** The settings of this process, from the current `ConfigProvider` (the environment variables by default). */
export const readSettings: Effect.Effect<SettingsShape, SettingsError> = fromEnvironment.pipe(
  Effect.mapError((error) => new SettingsError({ message: describe(error).join("\n") })),
  Effect.filterOrElse(
    (settings) => modeProblems(settings).length === 0,
    (settings) => new SettingsError({ message: modeProblems(settings).join("\n") })
  )
)

/** The settings as a service, for layers that take theirs from the environment. */
export class Settings extends Context.Tag("connected-payments/settings/Settings")<Settings, SettingsShape>() {
  static readonly layer: Layer.Layer<Settings, SettingsError> = Layer.effect(Settings, readSettings)
}
