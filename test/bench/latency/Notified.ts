import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { freePort } from "../../harness/FreePort.ts"
import type { Database } from "../deliveries/Bed.ts"

const LocalFile = Schema.parseJson(Schema.Struct({ baseUrl: Schema.String, organizationId: Schema.String }))
const Secrets = Schema.parseJson(Schema.Struct({ providerWebhookSecret: Schema.String }))

const readJson = <A>(schema: Schema.Schema<A, string>, ...path: ReadonlyArray<string>) =>
  Effect.flatMap(
    Effect.promise(() => readFile(join(...path), "utf8")),
    Schema.decode(schema)
  )

/** Where a service that was started on the database is notified, and a free port for its consumer. */
export const notified = Effect.fnUntraced(function* (database: Database) {
  const directory = join(database.directory, "service")
  const { baseUrl, organizationId } = yield* readJson(LocalFile, directory, "local.json")
  const { providerWebhookSecret } = yield* readJson(Secrets, directory, "secrets.json")
  return { baseUrl, organizationId, providerWebhookSecret, port: yield* freePort }
})

export const percentile = (values: ReadonlyArray<number>, share: number): number => {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN
}
