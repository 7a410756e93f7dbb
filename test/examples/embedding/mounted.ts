/** The whole service in your own server, under a prefix and beside your own routes: one port, one deployment. */
import { createServer } from "node:http"
import { FetchHttpClient, HttpClient, HttpRouter, HttpServer, HttpServerResponse } from "@effect/platform"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { PgClient } from "@effect/sql-pg"
import { embeddedAppLayer, PaymentsApp } from "connected-payments"
import { EmbeddedDatabase, LocalProvider } from "connected-payments/testing"
import { Effect, Layer, Redacted } from "effect"

const database = Layer.unwrapEffect(
  Effect.map(EmbeddedDatabase, ({ url }) => PgClient.layer({ url, maxConnections: 5 }))
).pipe(Layer.provide(EmbeddedDatabase.layer))

const port = Number(process.env["PORT"] ?? 8089)
const origin = `http://127.0.0.1:${port}`

/** `publicUrl` has the prefix: links in answers and mails begin with it. */
const payments = Layer.unwrapEffect(
  Effect.map(LocalProvider, ({ options }) =>
    embeddedAppLayer({
      publicUrl: `${origin}/payments`,
      masterKeys: [{ id: "2026", key: Redacted.make(crypto.getRandomValues(new Uint8Array(32))) }],
      provider: options,
      settings: { console: false }
    })
  )
).pipe(Layer.provide(LocalProvider.layer), Layer.provide(database))

const server = Layer.unwrapEffect(
  Effect.map(PaymentsApp, ({ httpApp }) =>
    HttpRouter.empty.pipe(
      HttpRouter.get("/", HttpServerResponse.text("The shop")),
      // The provider sends its notifications to `${origin}/payments/webhooks/provider`
      HttpRouter.mountApp("/payments", httpApp, { includePrefix: false }),
      HttpServer.serve()
    )
  )
).pipe(Layer.provide(payments), Layer.provide(NodeHttpServer.layer(createServer, { host: "127.0.0.1", port })))

const program = Effect.gen(function* () {
  const textAt = (path: string) => Effect.flatMap(HttpClient.get(`${origin}${path}`), ({ text }) => text)
  const answers = [yield* textAt("/"), yield* textAt("/payments/health/ready")]
  yield* Effect.sync(() => process.stdout.write(`mounted service: ${answers.join(", ")}\n`))
})

await Effect.runPromise(program.pipe(Effect.provide(server), Effect.provide(FetchHttpClient.layer)))
