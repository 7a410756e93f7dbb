import { ConfigProvider, Duration, Effect, Option } from "effect"
import { readSettings, type SettingsShape } from "../settings/Settings.ts"
import { withGenerated } from "./Generated.ts"

/** The settings as a table for operators; the defaults that are values are read from the settings themselves. */

/** One row: settings that are told of together. */
interface Row {
  readonly names: ReadonlyArray<string>
  /** What holds where it is not set: values in code, or words. */
  readonly fallback: string | ((settings: SettingsShape) => ReadonlyArray<string | number | Duration.Duration>)
  readonly about: string
  /** What `MODE=production` makes of it. */
  readonly production?: "required" | "refused"
}

const rows: ReadonlyArray<Row> = [
  { names: ["MODE"], fallback: ({ mode }) => [mode], about: "`production` refuses every local default below" },
  { names: ["HOST", "PORT"], fallback: ({ host, port }) => [host, port], about: "port 0 picks a free one" },
  {
    names: ["PUBLIC_URL"],
    fallback: "of host and port",
    about: "where integrators reach the service",
    production: "required"
  },
  {
    names: ["ROLES"],
    fallback: "`all`",
    about: "`api` serves HTTP, `worker` delivers; any number of processes share one database"
  },
  {
    names: ["DATABASE_URL"],
    fallback: "an embedded PostgreSQL in `DATA_DIR`",
    about: "PostgreSQL 15 or newer; the schema `payments` is made and kept up to date",
    production: "required"
  },
  {
    names: ["DATABASE_POOL_SIZE"],
    fallback: ({ databasePoolSize }) => [databasePoolSize],
    about: "connections per process, 2 to 500"
  },
  {
    names: ["DATA_DIR"],
    fallback: ({ dataDirectory }) => [dataDirectory],
    about: "local defaults only: nothing else is kept on disk"
  },
  {
    names: ["PROVIDER_SANDBOX_SECRET_KEY", "PROVIDER_SANDBOX_WEBHOOK_SECRETS"],
    fallback: "the local emulator",
    about:
      "the platform's test-mode key, and the signing secrets of its notification endpoints, snapshots' and thin ones' (comma-separated; more while one is rotated)"
  },
  {
    names: ["PROVIDER_PRODUCTION_SECRET_KEY", "PROVIDER_PRODUCTION_WEBHOOK_SECRETS"],
    fallback: "none",
    about: "the same in live mode; with `MODE=production` only, which needs these or the sandbox's"
  },
  {
    names: ["PROVIDER_API_URL"],
    fallback: "the provider's",
    about: "another address of the provider's API: an emulator's",
    production: "refused"
  },
  {
    names: ["LOCAL_ACCOUNT_ID"],
    fallback: "none",
    about: "the provider's account that a first local start links, where no emulator is started"
  },
  {
    names: ["CHECKOUT_SUCCESS_URL", "CHECKOUT_CANCEL_URL"],
    fallback: "pages of the service",
    about: "where payers return to; `{CHECKOUT_SESSION_ID}` is filled in",
    production: "required"
  },
  {
    names: ["MASTER_KEYS"],
    fallback: "made in `DATA_DIR`",
    about:
      "`id:base64 of 32 bytes`, comma-separated, the current one first: encrypts signing secrets at rest; the others decrypt",
    production: "required"
  },
  {
    names: ["PROVIDER_TIMEOUT"],
    fallback: ({ provider }) => [provider.timeout],
    about: "for a whole call to the provider, with its repeats; at least `1 second`"
  },
  {
    names: ["PROVIDER_CONCURRENCY_PER_ACCOUNT"],
    fallback: ({ provider }) => [provider.concurrencyPerAccount],
    about: "calls to the provider at once, per connected account and process, 1 to 1000; more wait for their turn"
  },
  {
    names: ["IMAGE_STORE_URL", "IMAGE_STORE_ACCESS_KEY_ID", "IMAGE_STORE_SECRET_ACCESS_KEY", "IMAGE_STORE_REGION"],
    fallback: "the database",
    about:
      "a bucket of an S3-compatible store for product images, such as `https://s3.eu-central-1.amazonaws.com/bucket`; the region is `us-east-1` where none is said; the key must be allowed to list the bucket, or a missing image looks like a refusal, and to delete objects, for `images remove`"
  },
  {
    names: ["ALLOW_LOCAL_DESTINATIONS"],
    fallback: ({ allowLocalDestinations }) => [String(allowLocalDestinations)],
    about: "loopback and plain HTTP destinations, in the sandbox only",
    production: "refused"
  },
  {
    names: ["ALLOWED_DESTINATION_NETWORKS"],
    fallback: "none",
    about:
      "private networks (within `10.0.0.0/8`, `172.16.0.0/12`, `192.168.0.0/16`, `100.64.0.0/10`, `fc00::/7`), comma-separated, where destinations may be in the sandbox: by address or by a name without a public domain (`receiver`, `host.docker.internal`), with HTTP or HTTPS on any port",
    production: "refused"
  },
  {
    names: ["EMULATOR_HOST", "EMULATOR_PORT"],
    fallback: ({ provider }) => [provider.emulatorHost, provider.emulatorPort],
    about: "where the local emulator listens; port 0 keeps the one that it had"
  },
  {
    names: ["SMTP_URL"],
    fallback: "the log, in `local`",
    about:
      "where mail is sent: `smtps://` is TLS from the start; with `MODE=production`, `smtp://` is STARTTLS or nothing, unless the relay is this machine (`localhost`, `127.0.0.1`, `::1`)",
    production: "required"
  },
  { names: ["MAIL_FROM"], fallback: ({ mailFrom }) => [mailFrom], about: "from whom mail is" },
  {
    names: ["RATE_LIMIT_PER_MINUTE"],
    fallback: ({ rateLimitPerMinute }) => [rateLimitPerMinute],
    about: "requests per key or session, and ten times as many per organization, across all processes"
  },
  {
    names: ["FAILED_AUTHENTICATIONS_PER_MINUTE"],
    fallback: ({ failedAuthenticationsPerMinute }) => [failedAuthenticationsPerMinute],
    about: "per client address; as many sign-in requests without a credential"
  },
  {
    names: ["TRUSTED_PROXIES"],
    fallback: "none",
    about:
      "addresses and networks whose `X-Forwarded-For` is believed, comma-separated; behind a proxy that is not named, all clients count as one"
  },
  {
    names: ["TRUSTED_ORIGINS"],
    fallback: "`PUBLIC_URL`'s",
    about:
      "origins, comma-separated, whose pages may act for a signed-in person and read the answers (CORS, on `/v2` and `/identity`); their host must be of `PUBLIC_URL`'s site, since browsers send the session's cookie nowhere else"
  },
  {
    names: ["IMAGE_MEGABYTES_PER_HOUR"],
    fallback: ({ imageMegabytesPerHour }) => [imageMegabytesPerHour],
    about: "product images that an organization may upload within an hour, per environment; at least 5"
  },
  {
    names: ["ENDPOINT_LIMIT"],
    fallback: ({ endpointLimit }) => [endpointLimit],
    about: "endpoints per organization and environment, 1 to 1000"
  },
  {
    names: ["DELIVERY_TIMEOUT", "DELIVERY_LEASE_MARGIN"],
    fallback: ({ delivery }) => [delivery.timeout, delivery.leaseMargin],
    about: "one attempt, and how much longer its claim lasts"
  },
  {
    names: ["DELIVERY_CONCURRENCY", "DELIVERY_CONCURRENCY_PER_ENDPOINT"],
    fallback: ({ delivery }) => [delivery.concurrency, delivery.concurrencyPerEndpoint],
    about:
      "attempts in flight per process, and per endpoint in it; one that has waited for its answer for 250 ms gives its place up, and up to 2048 more go on so"
  },
  {
    names: ["DELIVERY_POLL_INTERVAL"],
    fallback: ({ delivery }) => [delivery.pollInterval],
    about: "how often due deliveries are looked for when nothing wakes the worker"
  },
  {
    names: ["DELIVERY_RETENTION"],
    fallback: ({ delivery }) => [delivery.retention],
    about: "how long finished deliveries and their payloads are kept; at least `4 days`"
  },
  {
    names: ["RECEIPT_RETENTION", "AUDIT_RETENTION"],
    fallback: ({ auditRetention, receiptRetention }) => [receiptRetention, auditRetention],
    about: "how long receipts of notifications (at least `30 days`) and audit records are kept"
  },
  {
    names: ["CONNECTION_LIMIT"],
    fallback: ({ http }) => [http.connectionLimit],
    about:
      "open connections of clients per process, 16 to 100000; one address has half of them at most, unless it is in `TRUSTED_PROXIES`; beyond the limit the longest idle one is closed, or the new one if none is idle"
  },
  {
    names: ["REQUEST_TIMEOUT", "ANSWER_TIMEOUT"],
    fallback: ({ http }) => [http.requestTimeout, http.answerTimeout],
    about:
      "how long a client may take to send a request and to read its answer; either ends after 20 seconds in which nothing moves"
  },
  {
    names: ["KEEP_ALIVE_TIMEOUT"],
    fallback: ({ http }) => [http.keepAliveTimeout],
    about: "how long a connection stays open without a request; set it above your load balancer's own"
  },
  {
    names: ["PUBLIC_IMAGE_CONCURRENCY"],
    fallback: ({ http }) => [http.imageConcurrency],
    about:
      "public images on their way to clients at once per process, 1 to 10000, each with about 0.5 MB of memory; one client address has a quarter of them at most; more wait 10 seconds for their turn"
  },
  {
    names: ["SHUTDOWN_DELAY"],
    fallback: ({ http }) => [http.shutdownDelay],
    about:
      "how long a shutdown goes on serving with `/health/ready` at 503, before it takes no more connections: what your load balancer needs to notice"
  },
  {
    names: ["SHUTDOWN_TIMEOUT"],
    fallback: ({ shutdownTimeout }) => [shutdownTimeout],
    about: "how long a shutdown then waits for requests and attempts under way; what is not answered by then gets a 503"
  },
  {
    names: ["LOG_LEVEL"],
    fallback: "`info`",
    about:
      "the least that is logged: JSON lines on standard output with `MODE=production`, else plain lines on standard error"
  },
  { names: ["LOG_REQUESTS"], fallback: "`true`", about: "whether the log has a line for each request" },
  {
    names: ["TRUSTED_TRACE_PARENTS"],
    fallback: "none",
    about:
      "addresses and networks of callers, comma-separated, whose `traceparent` the traces of their requests continue; those of all others are linked to"
  },
  {
    names: ["OTEL_EXPORTER_OTLP_ENDPOINT"],
    fallback: "off",
    about: "where traces, metrics and logs go; with the other standard `OTEL_*` variables"
  },
  {
    names: ["OTEL_EXPORTER_OTLP_PROTOCOL"],
    fallback: "`http/protobuf`",
    about: "or `http/json`; another stops the start, `grpc` included"
  }
]

/** The settings that the table names. */
export const documentedSettings: ReadonlyArray<string> = rows.flatMap(({ names }) => names)

/** What the table says of `MODE=production`, by setting. */
export const documentedInProduction = (what: "required" | "refused"): ReadonlyArray<string> =>
  rows.filter(({ production }) => production === what).flatMap(({ names }) => names)

const units = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1000],
  ["milli", 1]
] as const

/** A duration as a setting is written, in the largest unit that it is a whole number of. */
const written = (duration: Duration.Duration): string => {
  const millis = Duration.toMillis(duration)
  const [unit, size] = units.find(([, size]) => millis % size === 0) ?? ["milli", 1]
  return `${millis / size} ${unit}${millis === size ? "" : "s"}`
}

const fallbackOf = ({ fallback }: Row, settings: SettingsShape): string =>
  typeof fallback === "string"
    ? fallback
    : fallback(settings)
        .map((value) => `\`${Duration.isDuration(value) ? written(value) : value}\``)
        .join(", ")

const productionOf = ({ production }: Row): string =>
  production === undefined ? "" : `; ${production} with \`MODE=production\``

/** The table in Markdown. */
export const settingsTable = (): string => {
  const settings = Option.getOrThrow(
    Effect.runSync(Effect.option(Effect.withConfigProvider(readSettings, ConfigProvider.fromMap(new Map()))))
  )
  return [
    "| Setting | Default | |",
    "| --- | --- | --- |",
    ...rows.map(
      (row) =>
        `| ${row.names.map((name) => `\`${name}\``).join(", ")} | ${fallbackOf(row, settings)} | ${row.about}${productionOf(row)} |`
    ),
    ""
  ].join("\n")
}

/** A text with the table of settings between its markers brought up to date. */
export const withSettingsTable = (text: string): string => withGenerated(text, "settings", settingsTable())
