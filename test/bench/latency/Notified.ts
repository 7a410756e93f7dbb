import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { freePort } from "../../harness/FreePort.ts"
import { answerOf, BenchFailed, localOf } from "../api/Processes.ts"
import { type Database, makeEndpoint } from "../deliveries/Bed.ts"
import type { LatencyOptions, LatencyResult } from "./Load.ts"

const Secrets = Schema.parseJson(Schema.Struct({ providerWebhookSecret: Schema.String }))

/** Endpoints of the service that was started on the database, and a load that notifies it and is their consumer. */
export const notified = Effect.fnUntraced(function* (database: Pick<Database, "directory" | "query">, fanOut: number) {
  const directory = join(database.directory, "service")
  const { baseUrl: url, organizationId } = yield* localOf(directory)
  const secrets = yield* Effect.promise(() => readFile(join(directory, "secrets.json"), "utf8"))
  const { providerWebhookSecret: webhookSecret } = yield* Schema.decode(Secrets)(secrets)
  const port = yield* freePort
  for (let index = 0; index < fanOut; index++) {
    yield* makeEndpoint(database, organizationId, `http://127.0.0.1:${port}/hook${index}`)
  }
  const [account] = yield* database.query(
    "UPDATE payments.provider_accounts SET had_payments_before = true RETURNING account_id AS id"
  )
  const to = { url, webhookSecret, accountId: String(account?.["id"]), port, fanOut }
  const load = (options: Pick<LatencyOptions, "rate" | "warmUpMillis" | "millis">) =>
    Effect.filterOrFail(
      answerOf<LatencyResult>(new URL("./Load.ts", import.meta.url), { ...to, ...options } satisfies LatencyOptions),
      ({ missing, refused }) => refused + missing === 0,
      ({ missing, refused, sent }) =>
        new BenchFailed({
          message: `Of ${sent} notifications ${refused} were refused; ${missing} events are missing`
        })
    )
  return { load, organizationId }
})
