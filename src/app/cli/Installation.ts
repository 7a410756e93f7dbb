import { userInfo } from "node:os"
import type { SqlClient, SqlError } from "@effect/sql"
import type { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Option, type Redacted, type Scope } from "effect"
import type { Provider } from "../../payments/Provider.ts"
import { stripeProviderLayer, withoutCredentials } from "../../payments/stripe/StripeProvider.ts"
import { Cipher } from "../../platform/kit/crypto/Cipher.ts"
import type { Author } from "../../platform/kit/Tenant.ts"
import { readSettings, type SettingsError, type SettingsShape } from "../../platform/settings/Settings.ts"
import { databaseLayer } from "../../platform/storage/Database.ts"
import { appliedMigrations, type MigrationFailed, migrate, migrations } from "../../platform/storage/Migrations.ts"
import { replicaOf } from "../../platform/storage/ReadReplica.ts"
import { completeSettings, type LocalDefaultsFailed } from "../local/Local.ts"
import type { ServiceOptions } from "../Service.ts"
import { RunAs } from "./Command.ts"
import { CommandFailed } from "./Failure.ts"
import { findLocalService, type LocalService } from "./LocalService.ts"

/**
 * The recorded author of the commands' changes: who is named with `--as`, who called `sudo`, or the operating system's
 * user, by number if it has no name.
 */
export const operator: Effect.Effect<Author> = RunAs.pipe(
  Effect.flatMap((as) => Effect.try(() => as ?? process.env["SUDO_USER"] ?? userInfo().username)),
  Effect.orElseSucceed(() => `uid ${process.getuid?.() ?? "unknown"}`),
  Effect.map((id) => ({ kind: "operator", id }))
)

const make = Effect.gen(function* () {
  const settings = yield* readSettings
  const local = yield* findLocalService(settings)
  const known = Option.orElse(settings.databaseUrl, () => Option.map(local, ({ databaseUrl }) => databaseUrl))
  if (Option.isNone(known)) {
    const { service } = yield* completeSettings(settings)
    return { settings, databaseUrl: service.databaseUrl, startedDatabase: true, service: Effect.succeed(service) }
  }
  const completed = completeSettings({ ...withEmulatorOf(local, settings), databaseUrl: known })
  return {
    settings,
    databaseUrl: known.value,
    startedDatabase: false,
    service: Effect.map(completed, ({ service }) => service)
  }
})

/** Without `DATABASE_URL`, the running service's database, or an embedded one for the command. */
export class Installation extends Context.Tag("connected-payments/cli/Installation")<
  Installation,
  {
    readonly settings: SettingsShape
    readonly databaseUrl: Redacted.Redacted
    /** Whether the database was started for this command, which then must update its schema. */
    readonly startedDatabase: boolean
    /** The service's provider and master keys. Without a provider key: the running service's emulator, or a new one. */
    readonly service: Effect.Effect<Pick<ServiceOptions, "provider" | "masterKeys">, LocalDefaultsFailed, Scope.Scope>
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

/** Connections per command, which runs one statement after another. */
const poolSize = 2

/** Brings the schema up to date; returns which migrations it lacked, even if another process has run them. */
export const applyMigrations: Effect.Effect<
  ReadonlyArray<string>,
  SqlError.SqlError | MigrationFailed,
  SqlClient.SqlClient
> = Effect.gen(function* () {
  const before = (yield* appliedMigrations) ?? []
  yield* migrate
  const after = (yield* appliedMigrations) ?? []
  return after.filter((name) => !before.includes(name))
})

/** Updates the schema of a database started for this command; any other's service may have another version. */
const withCurrentSchema = Effect.gen(function* () {
  if ((yield* Installation).startedDatabase) return yield* Effect.asVoid(applyMigrations)
  const applied = (yield* appliedMigrations) ?? []
  const missing = Object.keys(migrations).filter((name) => !applied.includes(name))
  if (missing.length > 0) {
    return yield* new CommandFailed({
      message: `The database lacks ${missing.length === 1 ? "a migration" : `${missing.length} migrations`} (${missing.join(", ")}). Run: connected-payments migrate`
    })
  }
})

type Sql = PgClient.PgClient | SqlClient.SqlClient

/** The database, whatever the state of its schema, for `migrate`. */
export const databaseAsFound: Layer.Layer<Sql | Installation, SettingsError | LocalDefaultsFailed | SqlError.SqlError> =
  Layer.unwrapEffect(
    Effect.map(Installation, ({ databaseUrl, settings: { databaseDirectUrl, databaseSchema } }) =>
      databaseLayer({
        url: databaseUrl,
        ...(Option.isSome(databaseDirectUrl) ? { directUrl: databaseDirectUrl.value } : {}),
        poolSize,
        schema: databaseSchema,
        applicationName: "connected-payments cli"
      })
    )
  ).pipe(Layer.provideMerge(Installation.layer))

export const database: Layer.Layer<
  Sql | Installation,
  SettingsError | LocalDefaultsFailed | SqlError.SqlError | MigrationFailed | CommandFailed
> = Layer.unwrapEffect(
  Effect.map(Installation, ({ settings }) =>
    Layer.merge(
      Layer.effectDiscard(withCurrentSchema),
      replicaOf(Option.getOrUndefined(settings.databaseReadUrl), poolSize)
    )
  )
).pipe(Layer.provideMerge(databaseAsFound))

export const provider: Layer.Layer<Provider | Cipher, SettingsError | LocalDefaultsFailed> = Layer.unwrapScoped(
  Effect.map(
    Effect.flatMap(Installation, ({ service }) => service),
    ({ masterKeys, provider }) => Layer.merge(stripeProviderLayer(provider), Cipher.layer(masterKeys))
  )
).pipe(Layer.provide(Installation.layer))

/** A provider for commands that only read recorded accounts: no key is needed, no emulator started. */
export const noProvider: Layer.Layer<Provider> = stripeProviderLayer(withoutCredentials)
