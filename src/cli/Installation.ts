import type { SqlClient, SqlError } from "@effect/sql"
import type { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Option, type Redacted, type Scope } from "effect"
import { Cipher } from "../kit/Cipher.ts"
import { completeSettings, type LocalDefaultsFailed } from "../local/Local.ts"
import type { Provider } from "../provider/Provider.ts"
import { stripeProviderLayer } from "../provider/stripe/StripeProvider.ts"
import type { ServiceOptions } from "../Service.ts"
import { type ImageStoreSettings, readSettings, type SettingsError, type SettingsShape } from "../settings/Settings.ts"
import { databaseLayer } from "../storage/Database.ts"
import type { MigrationFailed } from "../storage/Migrations.ts"
import { replicaOf } from "../storage/ReadReplica.ts"
import type { CommandFailed } from "./Failure.ts"
import { findLocalService, type LocalService } from "./LocalService.ts"
import { applyMigrations, requireCurrentSchema } from "./Schema.ts"

const make = Effect.gen(function* () {
  const settings = yield* readSettings
  const local = yield* findLocalService(settings)
  const known = Option.orElse(settings.databaseUrl, () => Option.map(local, ({ databaseUrl }) => databaseUrl))
  if (Option.isNone(known)) {
    const { service } = yield* completeSettings(settings)
    return {
      databaseUrl: service.databaseUrl,
      databaseDirectUrl: settings.databaseDirectUrl,
      databaseReadUrl: settings.databaseReadUrl,
      startedDatabase: true,
      service: Effect.succeed(service),
      imageStore: settings.imageStore
    }
  }
  return {
    databaseUrl: known.value,
    databaseDirectUrl: settings.databaseDirectUrl,
    databaseReadUrl: settings.databaseReadUrl,
    startedDatabase: false,
    imageStore: settings.imageStore,
    service: Effect.map(
      completeSettings({ ...withEmulatorOf(local, settings), databaseUrl: known }),
      ({ service }) => service
    )
  }
})

/**
 * The database, provider and image store that the commands work on, from the service's settings. Without `DATABASE_URL`
 * it is the database of the service that is running on the data directory; if none runs, the embedded one is started
 * for the command.
 */
export class Installation extends Context.Tag("connected-payments/cli/Installation")<
  Installation,
  {
    readonly databaseUrl: Redacted.Redacted
    /** The database's own address, if `databaseUrl` leads to a connection pooler. */
    readonly databaseDirectUrl: Option.Option<Redacted.Redacted>
    /** A replica that may answer lists. */
    readonly databaseReadUrl: Option.Option<Redacted.Redacted>
    /** Whether the database was started for this command, which then has to update its schema. */
    readonly startedDatabase: boolean
    /** The service's provider and master keys. If no provider's key is set: the running service's emulator, or a new one. */
    readonly service: Effect.Effect<Pick<ServiceOptions, "provider" | "masterKeys">, LocalDefaultsFailed, Scope.Scope>
    /** The bucket of product images; none if they are in the database. */
    readonly imageStore: Option.Option<ImageStoreSettings>
  }
>() {
  static readonly layer: Layer.Layer<Installation, SettingsError | LocalDefaultsFailed> = Layer.scoped(
    Installation,
    make
  )
}

/** Uses the emulator of a running service rather than starting another: two emulators must not write one journal. */
const withEmulatorOf = (local: Option.Option<LocalService>, settings: SettingsShape): SettingsShape => {
  const emulator = Option.flatMap(local, ({ emulator }) => emulator)
  return Option.isNone(emulator) || Option.isSome(settings.provider.sandbox)
    ? settings
    : {
        ...settings,
        provider: {
          ...settings.provider,
          sandbox: Option.some(emulator.value.credentials),
          apiUrl: Option.some(emulator.value.url)
        }
      }
}

/** Connections of a command, which runs one statement after another. */
const poolSize = 2

/** The database, whatever the state of its schema, for `migrate`. */
export const databaseAsFound: Layer.Layer<
  PgClient.PgClient | SqlClient.SqlClient,
  SettingsError | LocalDefaultsFailed | SqlError.SqlError,
  Installation
> = Layer.unwrapEffect(
  Effect.map(Installation, ({ databaseDirectUrl, databaseUrl }) =>
    databaseLayer({
      url: databaseUrl,
      ...(Option.isSome(databaseDirectUrl) ? { directUrl: databaseDirectUrl.value } : {}),
      poolSize,
      applicationName: "connected-payments cli"
    })
  )
)

/**
 * Brings the schema of a database up to date that was started for this command; requires it of any other, whose service
 * may be of another version.
 */
const withCurrentSchema: Effect.Effect<
  void,
  SqlError.SqlError | MigrationFailed | CommandFailed,
  Installation | SqlClient.SqlClient
> = Effect.gen(function* () {
  const { startedDatabase } = yield* Installation
  yield* startedDatabase ? applyMigrations : requireCurrentSchema
})

/** The database, with its schema up to date. */
export const database: Layer.Layer<
  PgClient.PgClient | SqlClient.SqlClient,
  SettingsError | LocalDefaultsFailed | SqlError.SqlError | MigrationFailed | CommandFailed,
  Installation
> = Layer.unwrapEffect(
  Effect.map(Installation, ({ databaseReadUrl }) =>
    Layer.merge(Layer.effectDiscard(withCurrentSchema), replicaOf(Option.getOrUndefined(databaseReadUrl), poolSize))
  )
).pipe(Layer.provideMerge(databaseAsFound))

/** The provider of the installation, and its master keys. */
export const provider: Layer.Layer<Provider | Cipher, LocalDefaultsFailed, Installation> = Layer.unwrapScoped(
  Effect.map(Effect.flatten(Effect.map(Installation, ({ service }) => service)), ({ masterKeys, provider }) =>
    Layer.merge(stripeProviderLayer(provider), Cipher.layer(masterKeys))
  )
)

/**
 * A provider for commands that only read recorded accounts and never call it: no key is needed, no emulator started.
 */
export const noProvider: Layer.Layer<Provider> = stripeProviderLayer({
  sandbox: Option.none(),
  production: Option.none(),
  apiUrl: Option.none(),
  checkoutSuccessUrl: "",
  checkoutCancelUrl: ""
})
