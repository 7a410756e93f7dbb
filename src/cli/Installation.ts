import type { SqlClient, SqlError } from "@effect/sql"
import type { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Option, type Redacted, type Scope } from "effect"
import { completeSettings, type LocalDefaultsFailed } from "../local/Local.ts"
import type { Provider } from "../provider/Provider.ts"
import { type StripeProviderOptions, stripeProviderLayer } from "../provider/stripe/StripeProvider.ts"
import { type ImageStoreSettings, readSettings, type SettingsError, type SettingsShape } from "../settings/Settings.ts"
import { databaseLayer } from "../storage/Database.ts"
import type { MigrationFailed } from "../storage/Migrations.ts"
import type { CommandFailed } from "./Failure.ts"
import { findLocalService, type LocalService } from "./LocalService.ts"
import { applyMigrations, requireCurrentSchema } from "./Schema.ts"

/**
 * What the commands work on, by the service's own settings. Without `DATABASE_URL` that is the database of the service
 * that is running on the data directory; where none runs, the embedded one is started for the command.
 */
export class Installation extends Context.Tag("connected-payments/cli/Installation")<
  Installation,
  {
    readonly databaseUrl: Redacted.Redacted
    /** Whether the database was started for this command, so that its schema is this command's to keep up to date. */
    readonly startedDatabase: boolean
    /** The provider as the service reaches it: where no key is set, the running service's emulator, or a started one. */
    readonly provider: Effect.Effect<StripeProviderOptions, LocalDefaultsFailed, Scope.Scope>
    /** The bucket that product images are kept in; none where they are in the database. */
    readonly imageStore: Option.Option<ImageStoreSettings>
  }
>() {
  static readonly layer: Layer.Layer<Installation, SettingsError | LocalDefaultsFailed> = Layer.scoped(
    Installation,
    Effect.gen(function* () {
      const settings = yield* readSettings
      const local = yield* findLocalService(settings)
      const known = Option.orElse(settings.databaseUrl, () => Option.map(local, ({ databaseUrl }) => databaseUrl))
      if (Option.isNone(known)) {
        const { service } = yield* completeSettings(settings)
        return {
          databaseUrl: service.databaseUrl,
          startedDatabase: true,
          provider: Effect.succeed(service.provider),
          imageStore: settings.imageStore
        }
      }
      return {
        databaseUrl: known.value,
        startedDatabase: false,
        imageStore: settings.imageStore,
        provider: Effect.map(
          completeSettings({ ...withEmulatorOf(local, settings), databaseUrl: known }),
          ({ service }) => service.provider
        )
      }
    })
  )
}

/** Two emulators must not write one journal: that of a running service is used rather than another one started. */
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

/** Commands run one statement after the other. */
const poolSize = 2

/** The database as it is found, for `migrate`. */
export const databaseAsFound: Layer.Layer<
  PgClient.PgClient | SqlClient.SqlClient,
  SettingsError | LocalDefaultsFailed | SqlError.SqlError,
  Installation
> = Layer.unwrapEffect(
  Effect.map(Installation, ({ databaseUrl }) =>
    databaseLayer({ url: databaseUrl, poolSize, applicationName: "connected-payments cli" })
  )
)

/** The database, its schema known to be up to date. */
export const database: Layer.Layer<
  PgClient.PgClient | SqlClient.SqlClient,
  SettingsError | LocalDefaultsFailed | SqlError.SqlError | MigrationFailed | CommandFailed,
  Installation
> = Layer.provideMerge(
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { startedDatabase } = yield* Installation
      yield* startedDatabase ? applyMigrations : requireCurrentSchema
    })
  ),
  databaseAsFound
)

/** The provider of these settings. */
export const provider: Layer.Layer<Provider, LocalDefaultsFailed, Installation> = Layer.unwrapScoped(
  Effect.gen(function* () {
    const installation = yield* Installation
    return stripeProviderLayer(yield* installation.provider)
  })
)

/** For commands that look at accounts on record and ask the provider nothing: no key is needed, no emulator started. */
export const noProvider: Layer.Layer<Provider> = stripeProviderLayer({
  sandbox: Option.none(),
  production: Option.none(),
  apiUrl: Option.none(),
  checkoutSuccessUrl: "",
  checkoutCancelUrl: ""
})
