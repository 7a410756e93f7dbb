import { dirname, join, resolve } from "node:path"
import { Effect, Option, Redacted, Schema } from "effect"
import type { Emulator } from "../../emulator/Emulator.ts"
import { Keys } from "../../identity/keys/Keys.ts"
import { Organizations } from "../../identity/organizations/Organizations.ts"
import { Accounts } from "../../payments/Accounts.ts"
import { OrganizationId } from "../../platform/kit/Ids.ts"
import type { SettingsShape } from "../../platform/settings/Settings.ts"
import { tryLock } from "../../platform/storage/embedded/DirectoryLock.ts"
import { type CompletedSettings, LocalDefaultsFailed, readPrivateFile, writePrivateFile } from "./Local.ts"

/** The organization that a local start creates, so that the first request can be sent at once. */

/** The content of `local.json`, for scripts: the same as printed at the start. */
const LocalFile = Schema.parseJson(
  Schema.Struct({
    baseUrl: Schema.String,
    emulatorUrl: Schema.NullOr(Schema.String),
    organizationId: OrganizationId,
    apiKey: Schema.String,
    ownerEmail: Schema.String,
    databaseUrl: Schema.String
  }),
  { space: 2 }
)
export type LocalFile = typeof LocalFile.Type

const defaultOwnerEmail = "owner@example.com"

export const localFilePath = (settings: Pick<SettingsShape, "dataDirectory">): string =>
  join(resolve(settings.dataDirectory), "local.json")

export const readLocalFile = (file: string): Effect.Effect<Option.Option<LocalFile>, LocalDefaultsFailed> =>
  Effect.map(readPrivateFile(file), Option.flatMap(Schema.decodeOption(LocalFile)))

const known = Effect.fnUntraced(function* (file: string) {
  const organizations = yield* Organizations
  const keys = yield* Keys
  const content = yield* readLocalFile(file)
  if (Option.isNone(content) || !(yield* organizations.exists(content.value.organizationId))) {
    return Option.none()
  }
  const { apiKey, organizationId, ownerEmail } = content.value
  const key = yield* Effect.option(keys.authenticate(Redacted.make(apiKey)))
  return Option.some({
    organizationId,
    ownerEmail,
    apiKey: Option.exists(key, (principal) => principal.organizationId === organizationId)
      ? Option.some(apiKey)
      : Option.none<string>()
  })
})

const newKey = (organizationId: OrganizationId) =>
  Effect.flatMap(Keys, (keys) =>
    Effect.map(
      keys.create({
        organizationId,
        name: "Local development",
        permissions: ["*", "webhook-endpoints:*"],
        author: { kind: "operator", id: "local" }
      }),
      ({ key }) => Redacted.value(key)
    )
  )

const linkAccount = Effect.fnUntraced(function* (
  organizationId: OrganizationId,
  accountId: Option.Option<string>,
  emulator: Option.Option<Emulator>
) {
  const accounts = yield* Accounts
  const id = Option.isSome(accountId)
    ? accountId
    : yield* Effect.transposeOption(Option.map(emulator, ({ ensureAccount }) => ensureAccount()))
  if (Option.isNone(id)) {
    yield* Effect.logWarning("No provider account is linked: set LOCAL_ACCOUNT_ID to an account of your platform")
    return
  }
  yield* accounts.link({ organizationId, environment: "sandbox" }, id.value)
})

/** Issues a new key if the file is gone, and adds the account to this emulator, which may not have created it. */
const recover = Effect.fnUntraced(function* (
  ownerEmail: string,
  settings: SettingsShape,
  { emulator }: CompletedSettings
) {
  const found = yield* Effect.flatMap(Organizations, ({ ofMember }) => ofMember(ownerEmail))
  if (Option.isNone(found)) {
    return yield* new LocalDefaultsFailed({
      message: `The local organization can't be created: ${ownerEmail} has just left another one. Start again.`
    })
  }
  const organizationId = found.value
  const account = yield* Effect.flatMap(Accounts, ({ show }) => show({ organizationId, environment: "sandbox" }))
  yield* Option.match(Option.all({ account, emulator }), {
    onSome: ({ account, emulator }) => emulator.ensureAccount(account.accountId),
    onNone: () =>
      Option.isNone(account) ? linkAccount(organizationId, settings.provider.localAccountId, emulator) : Effect.void
  })
  yield* Effect.logInfo(`The local organization ${organizationId} was found in the database: it gets a new API key`)
  return { organizationId, ownerEmail }
})

/** Creates the organization of the default owner, or finds that of an earlier start. */
const firstOrganization = Effect.fnUntraced(function* (settings: SettingsShape, completed: CompletedSettings) {
  const organizations = yield* Organizations
  return yield* organizations.create({ name: "Local organization", ownerEmail: defaultOwnerEmail }).pipe(
    Effect.tap(({ id }) => linkAccount(id, settings.provider.localAccountId, completed.emulator)),
    Effect.map(({ id }) => ({ organizationId: id, ownerEmail: defaultOwnerEmail })),
    Effect.catchTag("OrganizationAlreadyExists", () => recover(defaultOwnerEmail, settings, completed))
  )
})

/**
 * Finds the local organization and its key, or creates them: an owner, a linked sandbox account, and a key with `*` and
 * `webhook-endpoints:*`. An organization whose `local.json` is gone gets a new key. Returns the content of
 * `local.json`.
 */
export const ensureLocalOrganization = Effect.fn("ensureLocalOrganization")(
  function* (settings: SettingsShape, completed: CompletedSettings) {
    const file = localFilePath(settings)
    const found = yield* known(file)
    const { organizationId, ownerEmail } = Option.isSome(found)
      ? found.value
      : yield* firstOrganization(settings, completed)
    const key = Option.flatMap(found, ({ apiKey }) => apiKey)
    const content: LocalFile = {
      baseUrl: completed.baseUrl,
      emulatorUrl: Option.getOrNull(Option.map(completed.emulator, ({ url }) => url)),
      organizationId,
      apiKey: Option.isSome(key) ? key.value : yield* newKey(organizationId),
      ownerEmail,
      databaseUrl: Redacted.value(completed.service.databaseUrl)
    }
    return { file, content }
  },
  Effect.catchAll((cause) =>
    cause instanceof LocalDefaultsFailed
      ? Effect.fail(cause)
      : Effect.fail(
          new LocalDefaultsFailed({ message: `The local organization can't be created: ${cause.message}`, cause })
        )
  )
)

/**
 * Writes `local.json`, whose presence shows that the service is running. While the process that wrote it is alive,
 * another one on the same data directory leaves it unchanged, and logs its own address.
 */
export const writeLocalFile = Effect.fnUntraced(function* (file: string, content: LocalFile) {
  const isOurs = yield* tryLock(dirname(file)).pipe(
    Effect.mapError((cause) => new LocalDefaultsFailed({ message: `The file ${file} can't be written`, cause }))
  )
  if (!isOurs) {
    yield* Effect.logWarning(
      `${file} is not changed: it belongs to another process that runs on the same DATA_DIR. This one serves on ${content.baseUrl}`
    )
    return
  }
  const text = yield* Effect.orDie(Schema.encode(LocalFile)(content))
  yield* writePrivateFile(file, `${text}\n`)
})

/** The text that a person reads at the start; its commands can be pasted, all at once or one by one. */
export const welcome = (content: LocalFile, settings: Pick<SettingsShape, "console" | "roles">): string => {
  if (!settings.roles.api) {
    return `
connected-payments is ready: a worker, which delivers and serves nothing but its health

  Health        ${content.baseUrl}/health/ready
  Organization  ${content.organizationId}
`
  }
  const provider = `${content.baseUrl}/v2/organizations/${content.organizationId}/provider`
  const key = `-H 'x-api-key: ${content.apiKey}'`
  const post = (path: string, body: string) =>
    `curl -s -w '\\n' '${provider}${path}' ${key} \\
  -H 'content-type: application/json' -H "Idempotency-Key: $(od -An -N8 -tx1 /dev/urandom | tr -d ' ')" \\
  -d "${body.replaceAll('"', '\\"')}"`
  // Prints the answer and keeps the id for the next command
  const keep = (variable: string, prefix: string, command: string) =>
    `${variable}=$(${command} | tee /dev/stderr | grep -o '${prefix}_[A-Za-z0-9]*' | head -n 1)`
  return `
connected-payments is ready${content.emulatorUrl === null ? "" : " (sandbox only, on the local provider emulator)"}

  Base URL      ${content.baseUrl}
  Organization  ${content.organizationId}
  API key       ${content.apiKey}
  Docs          ${content.baseUrl}/docs
${settings.console ? `  Console       ${content.baseUrl}/console (sign in as ${content.ownerEmail}; without SMTP_URL the link is written here)\n` : ""}
Create a product, a price for it and a checkout session, then list the sessions:

${keep("PRODUCT", "prod", post("/products", '{"name": "Coffee"}'))}

${keep("PRICE", "price", post("/prices", '{"product": "$PRODUCT", "currency": "brl", "unit_amount": 1500}'))}

${post("/checkout/sessions", '{"mode": "payment", "line_items": [{"price": "$PRICE", "quantity": 1}]}')}

curl -s -w '\\n' '${provider}/checkout/sessions' ${key}
`
}
