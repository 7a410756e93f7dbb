/** A layer in place of the service's own provider, for some of its operations; `pixbank.ts` is another provider. */
import { FetchHttpClient } from "@effect/platform"
import { Provider, stripeProviderLayer } from "connected-payments"
import { makeClient } from "connected-payments/client"
import { LocalProvider, TestService } from "connected-payments/testing"
import { Context, Effect, Layer } from "effect"

/** Balances come from this team's own ledger; the rest stays what it was. */
const provider = Layer.scoped(
  Provider,
  Effect.gen(function* () {
    const { options } = yield* LocalProvider
    const original = Context.get(yield* Layer.build(stripeProviderLayer(options)), Provider)
    const balance = { object: "balance", available: [{ amount: 4200, currency: "brl" }] }
    return { ...original, retrieveBalance: () => Effect.succeed(balance) }
  })
)

const program = Effect.gen(function* () {
  const { apiKey, baseUrl, organizationId } = yield* TestService
  const client = yield* makeClient({ baseUrl, organizationId, apiKey })
  const { available } = yield* client.account.balance()
  const { id } = yield* client.products.create({ payload: { name: "Coffee" } })
  yield* Effect.sync(() =>
    process.stdout.write(`own provider: ${JSON.stringify(available)}, ${String(id).slice(0, 5)}\n`)
  )
})

await Effect.runPromise(
  program.pipe(Effect.provide(TestService.layer({ provider })), Effect.provide(FetchHttpClient.layer))
)
