import { randomBytes } from "node:crypto"
import { chmod, link, mkdir, readFile, rename, unlink, writeFile } from "node:fs/promises"
import { join, resolve } from "node:path"
import { Data, Effect, Option, Redacted, Schema, type Scope } from "effect"
import type { Emulator } from "../../emulator/Emulator.ts"
import { hasErrorCode } from "../../platform/errors/ErrorCode.ts"
import { checkoutReturnPaths } from "../../platform/settings/CheckoutReturnPaths.ts"
import type { MasterKey, ProviderCredentials, SettingsShape } from "../../platform/settings/Settings.ts"
import { tryLock } from "../../platform/storage/embedded/DirectoryLock.ts"
import { freePort } from "../../platform/storage/embedded/FreePort.ts"
import type { ServiceOptions } from "../Service.ts"
import { showStep } from "./Progress.ts"

/** Local defaults for missing settings, for one machine and the sandbox only. */

/** A local default could not be started. The message is for the person who typed `npm start`. */
export class LocalDefaultsFailed extends Data.TaggedError("LocalDefaultsFailed")<{
  readonly message: string
  readonly cause?: unknown
}> {}

export interface CompletedSettings {
  readonly service: ServiceOptions
  readonly baseUrl: string
  readonly emulator: Option.Option<Emulator>
}

/** Secrets of the local defaults, created once and kept in the data directory. */
const LocalSecrets = Schema.parseJson(
  Schema.Struct({
    masterKey: Schema.String,
    providerSecretKey: Schema.String,
    providerWebhookSecret: Schema.String
  }),
  { space: 2 }
)

/** Writes a file that only its owner can read, whole or not at all; `place` gives it its final name. */
const placePrivateFile = <A>(file: string, text: string, place: (temporary: string) => Promise<A>) =>
  Effect.tryPromise({
    try: async () => {
      const temporary = `${file}.${randomBytes(6).toString("hex")}`
      await writeFile(temporary, text, { mode: 0o600 })
      return await place(temporary)
    },
    catch: (cause) => new LocalDefaultsFailed({ message: `The file ${file} can't be written`, cause })
  })

/** Writes a file that only its owner can read, whole or not at all. */
export const writePrivateFile = (file: string, text: string): Effect.Effect<void, LocalDefaultsFailed> =>
  placePrivateFile(file, text, (temporary) => rename(temporary, file))

/** The same, but leaves an existing file unchanged: of several processes that create it, one succeeds. */
const createPrivateFile = (file: string, text: string): Effect.Effect<void, LocalDefaultsFailed> =>
  placePrivateFile(file, text, async (temporary) => {
    try {
      await link(temporary, file)
    } catch (cause) {
      if (!hasErrorCode(cause, "EEXIST")) throw cause
    } finally {
      await unlink(temporary)
    }
  })

export const readPrivateFile = (file: string): Effect.Effect<Option.Option<string>, LocalDefaultsFailed> =>
  Effect.tryPromise({ try: () => readFile(file, "utf8"), catch: (cause) => cause }).pipe(
    Effect.asSome,
    Effect.catchAll((cause) =>
      hasErrorCode(cause, "ENOENT")
        ? Effect.succeedNone
        : new LocalDefaultsFailed({ message: `The file ${file} can't be read`, cause })
    )
  )

export const localSecretsPath = (settings: Pick<SettingsShape, "dataDirectory">): string =>
  join(resolve(settings.dataDirectory), "secrets.json")

export const emulatorCredentials = (secrets: typeof LocalSecrets.Type): ProviderCredentials => ({
  secretKey: Redacted.make(secrets.providerSecretKey),
  webhookSecrets: [Redacted.make(secrets.providerWebhookSecret)]
})

export const readSecrets = (file: string) =>
  Effect.flatMap(readPrivateFile(file), (text) =>
    Effect.transposeMapOption(text, (known) =>
      Effect.mapError(
        Schema.decode(LocalSecrets)(known),
        (cause) => new LocalDefaultsFailed({ message: `The file ${file} is damaged`, cause })
      )
    )
  )

const localSecrets = Effect.fnUntraced(function* (file: string) {
  const known = yield* readSecrets(file)
  if (Option.isSome(known)) return known.value
  const made = {
    masterKey: randomBytes(32).toString("base64"),
    providerSecretKey: `sk_test_${randomBytes(24).toString("hex")}`,
    providerWebhookSecret: `whsec_${randomBytes(24).toString("hex")}`
  }
  yield* createPrivateFile(file, Schema.encodeSync(LocalSecrets)(made))
  // Another process may have created it first: this one must be able to read data that it encrypts
  return Option.getOrElse(yield* readSecrets(file), () => made)
})

/**
 * Whether this process may write the emulator's files in the data directory, until the scope ends. Only one process may
 * at a time: a second one would replace the journal while the first kept writing to the deleted file.
 */
const claimEmulatorFiles = (directory: string) => {
  const place = join(directory, "emulator")
  return Effect.tryPromise(() => mkdir(place, { recursive: true })).pipe(
    Effect.zipRight(tryLock(place)),
    Effect.mapError((cause) => new LocalDefaultsFailed({ message: `The directory ${place} can't be used`, cause }))
  )
}

/**
 * Starts the emulator, on its last port if possible: the URLs of its checkout pages contain its address. Its state is
 * kept in the data directory, unless another process keeps its own there: then it starts with a copy of that state, and
 * keeps changes in memory only.
 */
const startEmulator = Effect.fnUntraced(function* (
  directory: string,
  { emulatorHost, emulatorPort }: SettingsShape["provider"],
  secrets: typeof LocalSecrets.Type
) {
  const portFile = join(directory, "emulator.port")
  const journalFile = join(directory, "emulator.jsonl")
  const isOurs = yield* claimEmulatorFiles(directory)
  if (!isOurs) {
    yield* Effect.logWarning(
      `${journalFile} is not changed: it belongs to another process that runs on the same DATA_DIR. The emulator of this process starts with a copy of it, and keeps changes in memory only`
    )
  }
  const remembered = Option.match(yield* readPrivateFile(portFile), { onNone: () => 0, onSome: Number })
  const { makeEmulator } = yield* Effect.promise(() => import("../../emulator/Emulator.ts"))
  const startOn = (port: number) =>
    makeEmulator({
      host: emulatorHost,
      port,
      ...(isOurs ? { journalFile } : { beginWith: journalFile }),
      secretKey: secrets.providerSecretKey,
      webhookSecret: secrets.providerWebhookSecret
    })
  const emulator = yield* startOn(emulatorPort === 0 ? remembered : emulatorPort).pipe(
    Effect.catchIf(
      ({ reason }) => reason === "CannotListen" && emulatorPort === 0 && remembered !== 0,
      () => startOn(0)
    ),
    Effect.mapError(
      (cause) => new LocalDefaultsFailed({ message: `The provider emulator can't be started: ${cause.message}`, cause })
    )
  )
  if (isOurs) yield* writePrivateFile(portFile, new URL(emulator.url).port)
  return emulator
})

/** Finds a port before the server listens, since the URLs of the pages that payers return to contain it. */
const portOn = (host: string): Effect.Effect<number, LocalDefaultsFailed> =>
  Effect.mapError(freePort(host), (cause) => new LocalDefaultsFailed({ message: `No port is free on ${host}`, cause }))

const urlOf = (host: string, port: number): string => {
  const name = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host
  return `http://${name.includes(":") ? `[${name}]` : name}:${port}`
}

/** Creates the data directory. An existing one keeps its mode: it may be shared, or belong to another account. */
const createDataDirectory = (directory: string) =>
  Effect.tryPromise({
    try: async () => {
      const first = await mkdir(directory, { recursive: true })
      // Regardless of the umask: under root, the database runs as another account, which must be able to enter
      if (first !== undefined) await chmod(directory, 0o755)
    },
    catch: (cause) => new LocalDefaultsFailed({ message: `The data directory ${directory} can't be created`, cause })
  })

/** The configured OAuth applications; the emulator has its own. */
const oauthClientIds = (
  { productionOauthClientId, sandboxOauthClientId }: SettingsShape["provider"],
  emulator: Option.Option<Emulator>
) => {
  const sandbox = Option.orElse(sandboxOauthClientId, () => Option.map(emulator, ({ oauthClientId }) => oauthClientId))
  return {
    ...(Option.isSome(sandbox) ? { sandbox: sandbox.value } : {}),
    ...(Option.isSome(productionOauthClientId) ? { production: productionOauthClientId.value } : {})
  }
}

/** Starts PostgreSQL in the data directory, until the scope ends. */
const startDatabase = (directory: string) => {
  showStep(`Starting PostgreSQL in ${directory}`)
  return Effect.promise(() => import("../../platform/storage/embedded/EmbeddedPostgres.ts")).pipe(
    Effect.flatMap(({ startEmbeddedPostgres }) => startEmbeddedPostgres({ directory })),
    Effect.map(({ url }) => url),
    Effect.mapError((cause) => new LocalDefaultsFailed({ message: cause.message, cause }))
  )
}

const localMasterKeys = ({ masterKey }: typeof LocalSecrets.Type): readonly [MasterKey] => [
  { id: "local", key: Redacted.make(new Uint8Array(Buffer.from(masterKey, "base64"))) }
]

/** The provider's settings. Checkout pages lead back to the service's own ones by default. */
const providerOptions = (
  { checkoutCancelUrl, checkoutSuccessUrl, provider }: SettingsShape,
  emulator: Option.Option<Emulator>,
  credentials: Option.Option<ProviderCredentials>,
  baseUrl: string
): ServiceOptions["provider"] => ({
  timeout: provider.timeout,
  concurrencyPerAccount: provider.concurrencyPerAccount,
  sandbox: Option.orElse(provider.sandbox, () => credentials),
  production: provider.production,
  oauthClientIds: oauthClientIds(provider, emulator),
  apiUrl: Option.orElse(
    Option.map(emulator, ({ url }) => new URL(url)),
    () => provider.apiUrl
  ),
  checkoutSuccessUrl: Option.getOrElse(
    checkoutSuccessUrl,
    () => `${baseUrl}${checkoutReturnPaths.success}?session_id={CHECKOUT_SESSION_ID}`
  ),
  checkoutCancelUrl: Option.getOrElse(checkoutCancelUrl, () => `${baseUrl}${checkoutReturnPaths.cancel}`)
})

/** Completes the settings. Everything it starts ends with the scope. */
export const completeSettings = (
  settings: SettingsShape
): Effect.Effect<CompletedSettings, LocalDefaultsFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const directory = resolve(settings.dataDirectory)
    const port = settings.port === 0 ? yield* portOn(settings.host) : settings.port
    const baseUrl = Option.getOrElse(settings.publicUrl, () => urlOf(settings.host, port))
    const isLocal = settings.mode === "local"
    if (isLocal) yield* createDataDirectory(directory)
    const databaseUrl = yield* Option.match(settings.databaseUrl, {
      onSome: Effect.succeed,
      onNone: () => startDatabase(join(directory, "postgres"))
    })
    const secrets = isLocal ? Option.some(yield* localSecrets(localSecretsPath(settings))) : Option.none()
    const emulatorSecrets = Option.isNone(settings.provider.sandbox) ? secrets : Option.none()
    if (Option.isSome(emulatorSecrets)) showStep("Starting the local payment provider")
    const emulator = yield* Effect.transposeMapOption(emulatorSecrets, (known) =>
      startEmulator(directory, settings.provider, known)
    )
    const masterKeys = Option.orElse(settings.masterKeys, () => Option.map(secrets, localMasterKeys))
    if (Option.isNone(masterKeys)) {
      return yield* new LocalDefaultsFailed({ message: "MASTER_KEYS: is required" })
    }
    return {
      baseUrl,
      emulator,
      service: {
        settings: { ...settings, port },
        publicUrl: baseUrl,
        databaseUrl,
        ...(Option.isSome(settings.databaseDirectUrl) ? { databaseDirectUrl: settings.databaseDirectUrl.value } : {}),
        ...(Option.isSome(settings.databaseReadUrl) ? { databaseReadUrl: settings.databaseReadUrl.value } : {}),
        masterKeys: masterKeys.value,
        ...(Option.isSome(settings.imageStore) ? { imageStore: settings.imageStore.value } : {}),
        provider: providerOptions(settings, emulator, Option.map(emulatorSecrets, emulatorCredentials), baseUrl)
      }
    }
  })
