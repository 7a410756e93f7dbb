import { BlockList } from "node:net"
import { Config, Either, Option, Redacted } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { writtenReturnUrl } from "../bounds/ReturnUrl.ts"
import { isSchemaName, type Purpose, readDatabaseUrl, schemaNames } from "./DatabaseUrl.ts"
import {
  anySecret,
  duration,
  type Form,
  flag,
  httpUrl,
  logLevel,
  mapped,
  networks,
  oneOf,
  origins,
  parsed,
  port,
  privateNetworks,
  secret,
  text,
  validated,
  whole
} from "./Forms.ts"
import { imageStore } from "./ImageStoreSettings.ts"
import { oauthClientId, providerCredentials, withSecretsApart } from "./ProviderCredentials.ts"
import { group, optional, setting } from "./Setting.ts"

/**
 * Every setting of the service, defined once: its name, the form of its value, its default and its purpose. The reader,
 * the type and the table of settings derive from it. Secrets are `Redacted`.
 */

/** A key that encrypts signing secrets at rest: its id is stored with each ciphertext. */
export interface MasterKey {
  readonly id: string
  readonly key: Redacted.Redacted<Uint8Array>
}

/** Master keys as `id:base64 of 32 bytes`, comma-separated; each id once. */
const masterKeys: Form<NonEmptyReadonlyArray<MasterKey>> = parsed(anySecret, (value) => {
  const keys: Array<MasterKey> = []
  for (const part of Redacted.value(value).split(",")) {
    const [id, encoded, ...rest] = part.trim().split(":")
    const bytes = Buffer.from(encoded ?? "", "base64")
    // Node skips characters that are not base64, such as quotes
    const isWhole = /^[\w+/-]{43}=?$/.test(encoded ?? "") && bytes.length === 32
    if (id === undefined || !/^[A-Za-z0-9_-]{1,32}$/.test(id) || rest.length > 0 || !isWhole) {
      return Either.left("must be a list of <id>:<base64 of 32 bytes>, comma-separated, the current key first")
    }
    keys.push({ id, key: Redacted.make(new Uint8Array(bytes)) })
  }
  const [first, ...others] = keys
  return first === undefined || new Set(keys.map((key) => key.id)).size !== keys.length
    ? Either.left("must name each key id once")
    : Either.right([first, ...others])
})

/** The URL of a database; the bounds of its hosts are libpq's. */
const databaseUrlFor = (purpose: Purpose) =>
  parsed(anySecret, (url) => Either.map(readDatabaseUrl(Redacted.value(url), purpose), () => url))

const returnUrl = mapped(httpUrl, writtenReturnUrl)

/** The base URL that paths are appended to. */
const publicUrl = mapped(
  validated(
    httpUrl,
    "must be a URL without credentials, a query or a fragment",
    ({ hash, password, search, username }) => [username, password, search, hash].every((part) => part === "")
  ),
  ({ origin, pathname }) => `${origin}${pathname}`.replace(/\/+$/, "")
)

export interface Roles {
  readonly api: boolean
  readonly worker: boolean
}

const noNetworks = () => ({ unset: "none", value: new BlockList() })

/** The settings under the program's names for them, in the order of the table. */
export const definitions = {
  mode: setting("MODE", oneOf("local", "production"), {
    default: "local",
    about: "`production` refuses every local default below"
  }),
  host: setting("HOST", text, { default: "127.0.0.1", about: "the address to listen on" }),
  port: setting("PORT", port, { default: 8080, about: "the port to listen on; 0 picks a free one" }),
  /** Without a trailing slash. */
  publicUrl: optional("PUBLIC_URL", publicUrl, {
    unset: "from host and port",
    about: "the URL at which integrators reach the service",
    production: "required"
  }),
  roles: setting(
    "ROLES",
    mapped(
      oneOf("all", "api", "worker"),
      (role): Roles => ({
        api: role === "all" || role === "api",
        worker: role === "all" || role === "worker"
      })
    ),
    {
      default: "all",
      about: "`api` serves HTTP, `worker` delivers, `all` does both; any number of processes share one database"
    }
  ),
  databaseUrl: optional(
    "DATABASE_URL",
    // With an empty one, the client would fall back to any server that it finds on this machine
    databaseUrlFor("write"),
    {
      unset: "an embedded PostgreSQL in `DATA_DIR`",
      about:
        "PostgreSQL 15 or newer, of one or more hosts (`h1:5432,h2:5432`), of which the primary is used; with `MODE=production` it needs an `sslmode` of at least `require`, unless the server is this machine or has a private address or name",
      production: "required"
    }
  ),
  databaseDirectUrl: optional("DATABASE_DIRECT_URL", databaseUrlFor("write"), {
    unset: "that of `DATABASE_URL`",
    about:
      "the same database without a connection pooler in between: required if the one in `DATABASE_URL` gives each transaction another connection (`pool_mode = transaction`)"
  }),
  /** Absent: everything is read from the primary. */
  databaseReadUrl: optional("DATABASE_READ_URL", databaseUrlFor("read"), {
    unset: "none",
    about: "a streaming replica that answers lists and history while it has caught up with the primary"
  }),
  databaseSchema: setting("DATABASE_SCHEMA", validated(text, schemaNames, isSchemaName), {
    default: "payments",
    about: "the schema of all tables, which is created and kept up to date; another one is another installation"
  }),
  databasePoolSize: setting("DATABASE_POOL_SIZE", whole({ min: 2, max: 500 }), {
    default: 10,
    about: "connections per process"
  }),
  dataDirectory: setting("DATA_DIR", text, {
    default: ".data",
    about: "where local defaults keep their data: nothing else is kept on disk"
  }),
  provider: withSecretsApart(
    group({
      sandbox: providerCredentials("sandbox"),
      production: providerCredentials("production"),
      sandboxOauthClientId: oauthClientId("sandbox"),
      productionOauthClientId: oauthClientId("production"),
      apiUrl: optional("PROVIDER_API_URL", httpUrl, {
        unset: "the provider's",
        about: "another address of the provider's API, such as an emulator's",
        production: "refused"
      }),
      localAccountId: optional(
        "LOCAL_ACCOUNT_ID",
        validated(text, "must be an id acct_…", (id) => /^acct_\w{1,64}$/.test(id)),
        {
          unset: "none",
          about: "the provider account that a first local start links if it starts no emulator"
        }
      ),
      emulatorHost: setting("EMULATOR_HOST", text, {
        default: "127.0.0.1",
        about: "the address that the local emulator listens on"
      }),
      emulatorPort: setting("EMULATOR_PORT", port, {
        default: 0,
        about: "its port; 0 keeps the one it had before, or picks a free one"
      }),
      timeout: setting("PROVIDER_TIMEOUT", duration({ min: "1 second" }), {
        default: "30 seconds",
        about: "for a whole call to the provider, including its repeats"
      }),
      concurrencyPerAccount: setting("PROVIDER_CONCURRENCY_PER_ACCOUNT", whole({ min: 1, max: 1000 }), {
        default: 20,
        about: "calls to the provider at once, per connected account and process; more wait for their turn"
      })
    })
  ),
  /** For organizations without one of their own; never set by a request (contract 4.3). */
  checkoutSuccessUrl: optional("CHECKOUT_SUCCESS_URL", returnUrl, {
    unset: "a page of the service",
    about:
      "where payers return to after payment, unless their organization has set a page of its own; `{CHECKOUT_SESSION_ID}` is filled in",
    production: "required"
  }),
  checkoutCancelUrl: optional("CHECKOUT_CANCEL_URL", returnUrl, {
    unset: "a page of the service",
    about:
      "where payers return to if they cancel, unless their organization has set a page of its own; `{CHECKOUT_SESSION_ID}` is filled in",
    production: "required"
  }),
  /** The first key encrypts; all decrypt. */
  masterKeys: optional("MASTER_KEYS", masterKeys, {
    unset: "created in `DATA_DIR`",
    about:
      "`id:base64 of 32 bytes`, comma-separated, the current one first: it encrypts signing secrets at rest, and the others decrypt",
    production: "required"
  }),
  /** Absent: images are kept in the database. */
  imageStore,
  /** Absent: `local` allows them. */
  allowLocalDestinations: optional("ALLOW_LOCAL_DESTINATIONS", flag, {
    unset: "`true` with `MODE=local`",
    about: "loopback and plain HTTP destinations, in the sandbox only",
    production: "refused"
  }),
  destinationNetworks: setting("ALLOWED_DESTINATION_NETWORKS", privateNetworks, {
    ...noNetworks(),
    about:
      "private networks (within `10.0.0.0/8`, `172.16.0.0/12`, `192.168.0.0/16`, `100.64.0.0/10`, `fc00::/7`), comma-separated, that destinations may be in, in the sandbox only: by address or by a name without a public domain (`receiver`, `host.docker.internal`), with HTTP or HTTPS on any port",
    production: "refused"
  }),
  smtpUrl: optional(
    "SMTP_URL",
    secret("must be an smtp:// or smtps:// URL, without spaces or quotes in it", (url) =>
      /^smtps?:\/\/[^\s"'`]+$/.test(url)
    ),
    {
      unset: "the log, with `MODE=local`",
      about:
        "the server that mail is sent through: `smtps://` is TLS from the start; with `MODE=production`, `smtp://` is STARTTLS or nothing, unless the relay is this machine (`localhost`, `127.0.0.1`, `::1`)",
      production: "required"
    }
  ),
  mailFrom: setting("MAIL_FROM", text, {
    default: "connected-payments <no-reply@localhost>",
    about: "the sender of mail"
  }),
  rateLimitPerMinute: setting("RATE_LIMIT_PER_MINUTE", whole({ min: 1, max: 100_000_000 }), {
    default: 600,
    about: "requests per key or session, and ten times as many per organization, across all processes"
  }),
  failedAuthenticationsPerMinute: setting("FAILED_AUTHENTICATIONS_PER_MINUTE", whole({ min: 1, max: 1_000_000 }), {
    default: 60,
    about: "failed authentications per client address; as many sign-in requests without a credential"
  }),
  trustedProxies: setting("TRUSTED_PROXIES", networks, {
    ...noNetworks(),
    about:
      "addresses and networks whose `X-Forwarded-For` is trusted, comma-separated; behind a proxy that is not listed, all clients count as one"
  }),
  /** In addition to the service's own origin. */
  trustedOrigins: setting("TRUSTED_ORIGINS", origins, {
    unset: "that of `PUBLIC_URL`",
    value: [],
    about:
      "further origins, comma-separated, whose pages may act for a signed-in person and read the answers (CORS, on `/v2` and `/identity`); their host must belong to the site of `PUBLIC_URL`, since browsers send the session's cookie nowhere else"
  }),
  console: setting("CONSOLE", flag, {
    default: true,
    about: "whether the console, the pages for people, is served at `/console`"
  }),
  imageMegabytesPerHour: setting("IMAGE_MEGABYTES_PER_HOUR", whole({ min: 5, max: 1_000_000 }), {
    default: 250,
    about: "product images that an organization may upload in an hour, per environment"
  }),
  endpointLimit: setting("ENDPOINT_LIMIT", whole({ min: 1, max: 1000 }), {
    default: 16,
    about: "endpoints per organization and environment"
  }),
  eventStreamLimit: setting("EVENT_STREAM_LIMIT", whole({ min: 1, max: 10_000 }), {
    default: 100,
    about: "streams of sandbox events that are open at once per process, at most 5 of them of one organization"
  }),
  delivery: group({
    timeout: setting("DELIVERY_TIMEOUT", duration({ min: "100 millis" }), {
      default: "10 seconds",
      about: "for the whole exchange of one attempt; if hundreds would time out together, some do up to a tenth later"
    }),
    leaseMargin: setting("DELIVERY_LEASE_MARGIN", duration({ min: "1 second" }), {
      default: "5 seconds",
      about: "how much longer than the timeout a delivery stays claimed, before another process may take it"
    }),
    concurrency: setting("DELIVERY_CONCURRENCY", whole({ min: 1, max: 10_000 }), {
      default: 256,
      about:
        "attempts in flight per process; one that has waited 250 ms for its answer gives up its place, and up to 2048 such attempts continue"
    }),
    concurrencyPerEndpoint: setting("DELIVERY_CONCURRENCY_PER_ENDPOINT", whole({ min: 1, max: 1000 }), {
      default: 64,
      about: "attempts in flight per endpoint and process; more than 16 only to one that answers within 100 ms"
    }),
    pollInterval: setting("DELIVERY_POLL_INTERVAL", duration({ min: "10 millis" }), {
      default: "1 second",
      about: "how often a worker looks for due deliveries when nothing wakes it"
    }),
    // A delivery can be re-sent for 72 hours
    retention: setting("DELIVERY_RETENTION", duration({ min: "4 days" }), {
      default: "30 days",
      about: "how long finished deliveries and their payloads are kept"
    })
  }),
  reconciliation: setting("RECONCILIATION", flag, {
    default: true,
    about:
      "whether one process compares the provider's events of all connected accounts with the receipts, every ten minutes, and stores those whose notifications never came; it takes at most 1 % of the provider's rate limit"
  }),
  // The provider can repeat a notification for 30 days, and only its receipt shows that it is known
  receiptRetention: setting("RECEIPT_RETENTION", duration({ min: "30 days" }), {
    default: "400 days",
    about: "how long receipts of the provider's notifications are kept"
  }),
  auditRetention: setting("AUDIT_RETENTION", duration({ min: "1 day" }), {
    default: "730 days",
    about: "how long audit records are kept"
  }),
  http: group({
    connectionLimit: setting("CONNECTION_LIMIT", whole({ min: 16, max: 100_000 }), {
      default: 2000,
      about:
        "open connections of clients per process; one address has at most half of them, unless it is in `TRUSTED_PROXIES`; beyond the limit the longest idle one is closed, or the new one if none is idle"
    }),
    requestTimeout: setting("REQUEST_TIMEOUT", duration({ min: "1 second" }), {
      default: "1 minute",
      about:
        "how long a client may take to send a request; its connection ends after 20 seconds in which nothing arrives"
    }),
    answerTimeout: setting("ANSWER_TIMEOUT", duration({ min: "1 second" }), {
      default: "2 minutes",
      about:
        "how long a client may take to read an answer; its connection ends after 20 seconds in which nothing is read"
    }),
    keepAliveTimeout: setting("KEEP_ALIVE_TIMEOUT", duration({ min: "1 second" }), {
      default: "5 seconds",
      about: "how long a connection stays open without a request; set it above your load balancer's own"
    }),
    imageConcurrency: setting("PUBLIC_IMAGE_CONCURRENCY", whole({ min: 1, max: 10_000 }), {
      default: 64,
      about:
        "public images on their way to clients at once per process, each with about 0.5 MB of memory; one client address has at most a quarter of them; more wait up to 10 seconds for their turn"
    }),
    shutdownDelay: setting("SHUTDOWN_DELAY", duration(), {
      default: "0 seconds",
      about:
        "how long a shutdown keeps serving, with `/health/ready` at 503, before it stops accepting connections: as long as your load balancer needs to notice"
    })
  }),
  shutdownTimeout: setting("SHUTDOWN_TIMEOUT", duration({ min: "100 millis" }), {
    default: "5 seconds",
    about: "how long a shutdown then waits for requests and attempts under way; requests not answered by then get a 503"
  }),
  /** Callers whose traces their requests continue. */
  trustedTraceParents: setting("TRUSTED_TRACE_PARENTS", networks, {
    ...noNetworks(),
    about:
      "addresses and networks of callers, comma-separated, whose requests continue the trace of their `traceparent`; for all others, the trace is only linked"
  })
}

/** The settings of the log, which are read separately, so that an error in another setting can be logged. */
export const logDefinitions = {
  level: setting("LOG_LEVEL", logLevel, {
    default: "info",
    about:
      "the lowest level that is logged: JSON lines on standard output with `MODE=production`, else plain lines on standard error"
  }),
  requests: setting("LOG_REQUESTS", flag, { default: true, about: "whether the log has a line for each request" })
}

const documented = group(definitions)

export const settingRows = [...documented.rows, ...group(logDefinitions).rows]

/** Reads the settings; the mode's further requirements are checked later (`modeProblems`). */
export const settings = Config.map(documented, (read) => ({
  ...read,
  allowLocalDestinations: Option.getOrElse(read.allowLocalDestinations, () => read.mode === "local")
}))

export interface SettingsShape extends Readonly<Config.Config.Success<typeof settings>> {}
