import type { SqlClient } from "@effect/sql"
import { Context, Effect, Layer } from "effect"
import type { ProviderAccountNotConnected, ServiceUnavailable } from "../Errors.ts"
import type { Tenant } from "../kit/Tenant.ts"
import { orUnavailable } from "../storage/Database.ts"
import { Accounts } from "./Accounts.ts"
import type { CreatePaymentLink } from "./PaymentLinksApi.ts"
import { type PriceTerms, trialOf } from "./Prices.ts"
import { Provider } from "./Provider.ts"
import type { ProviderFailure } from "./ProviderErrors.ts"
import { providerIdempotencyKey } from "./ProviderIdempotency.ts"
import type { ProviderObject } from "./Schemas.ts"
import { makeSoldItemsRepo } from "./SoldItemsRepo.ts"

/** Payment links that this service makes, with the record of what each sells. */
export class PaymentLinks extends Context.Tag("connected-payments/provider/PaymentLinks")<
  PaymentLinks,
  {
    /**
     * Makes a link of these prices' terms, and remembers what it sells, for the events of its sessions. The same
     * idempotency key with the same parameters makes one.
     */
    readonly create: (
      tenant: Tenant,
      params: CreatePaymentLink,
      terms: ReadonlyArray<PriceTerms>,
      callerKey: string
    ) => Effect.Effect<ProviderObject, ProviderFailure | ProviderAccountNotConnected | ServiceUnavailable>
  }
>() {
  static readonly layer: Layer.Layer<PaymentLinks, never, SqlClient.SqlClient | Provider | Accounts> = Layer.effect(
    PaymentLinks,
    Effect.gen(function* () {
      const provider = yield* Provider
      const accounts = yield* Accounts
      const soldItems = yield* makeSoldItemsRepo

      const create = Effect.fn("PaymentLinks.create")(function* (
        tenant: Tenant,
        params: CreatePaymentLink,
        terms: ReadonlyArray<PriceTerms>,
        callerKey: string
      ) {
        const mode = terms.some(({ recurring }) => recurring) ? ("subscription" as const) : ("payment" as const)
        const created = yield* accounts.use(tenant, (account) =>
          provider.createPaymentLink(
            account,
            { ...params, mode, trialPeriodDays: trialOf(terms) },
            {
              idempotencyKey: providerIdempotencyKey({
                tenant,
                account,
                operation: "payment_links.create",
                callerKey
              })
            }
          )
        )
        yield* soldItems.insert(tenant, String(created.link["id"]), created.soldItems).pipe(orUnavailable)
        return created.link
      })

      return { create }
    })
  )
}
