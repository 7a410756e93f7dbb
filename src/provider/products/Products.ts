import { Context, Effect, Layer } from "effect"
import { type ProviderAccountNotConnected, type ServiceUnavailable, ValidationFailed } from "../../Errors.ts"
import type { Tenant } from "../../kit/Tenant.ts"
import { Accounts } from "../Accounts.ts"
import { type ConnectedAccount, Provider } from "../Provider.ts"
import { type AccountAccessRevoked, isRefusal, type ProviderFailure } from "../ProviderErrors.ts"
import { providerIdempotencyKey } from "../ProviderIdempotency.ts"
import { objectNotFound } from "../RefusalReasons.ts"
import { inOurNames } from "../RefusedFields.ts"
import type { ProviderObject } from "../Schemas.ts"
import type { UpdateProduct } from "./Api.ts"

/** Changes of products that take more than one call (contract 4.5). */
export class Products extends Context.Tag("connected-payments/provider/Products")<
  Products,
  {
    /**
     * Changes a product. A new default price is made first and taken out of sale again where the change is refused; a
     * repeat under the same key completes what a crash or a lost answer cut off, and makes nothing twice.
     */
    readonly update: (
      tenant: Tenant,
      id: string,
      params: UpdateProduct,
      effectKey: string
    ) => Effect.Effect<ProviderObject, ProviderFailure | ProviderAccountNotConnected | ServiceUnavailable>
  }
>() {
  static readonly layer: Layer.Layer<Products, never, Provider | Accounts> = Layer.effect(
    Products,
    Effect.gen(function* () {
      const provider = yield* Provider
      const accounts = yield* Accounts

      const keysOf = (tenant: Tenant, account: ConnectedAccount, effectKey: string) => (step: string) => ({
        idempotencyKey: providerIdempotencyKey({ tenant, account, operation: "products.update", effectKey, step })
      })

      const replaceDefaultPrice = Effect.fnUntraced(function* (
        account: ConnectedAccount,
        id: string,
        { default_price_data, ...changes }: UpdateProduct & Required<Pick<UpdateProduct, "default_price_data">>,
        key: (step: string) => { readonly idempotencyKey: string }
      ) {
        const price = yield* provider
          .createPrice(account, { ...default_price_data, product: id }, key("price"))
          .pipe(Effect.mapError(asOfTheProduct))
        const priceId = String(price["id"])
        return yield* provider.updateProduct(account, id, { ...changes, default_price: priceId }, key("product")).pipe(
          Effect.mapError(inOurNames({ default_price: "default_price_data" })),
          Effect.tapError((failure) =>
            isRefusal(failure)
              ? Effect.catchIf(provider.deactivatePrice(account, priceId, key("undo")), isRefusal, () => Effect.void)
              : Effect.void
          )
        )
      })

      const update = Effect.fn("Products.update")(function* (
        tenant: Tenant,
        id: string,
        params: UpdateProduct,
        effectKey: string
      ) {
        return yield* accounts.use(tenant, (account) => {
          const key = keysOf(tenant, account, effectKey)
          const { default_price_data, ...changes } = params
          return default_price_data === undefined
            ? provider.updateProduct(account, id, changes, key("product"))
            : replaceDefaultPrice(account, id, { ...changes, default_price_data }, key)
        })
      })

      return { update }
    })
  )
}

/** Refusals of the new price, as those of the product's change: an unknown product is the one in the path. */
const asOfTheProduct = (failure: ProviderFailure | AccountAccessRevoked): ProviderFailure | AccountAccessRevoked =>
  failure._tag === "ProviderRequestRefused" &&
  failure.code === "provider_resource_missing" &&
  failure.fields.includes("product")
    ? objectNotFound({ fields: ["id"], cause: failure.cause })
    : inOurNames({ "": "default_price_data" })(failure)

/** A new price is a financial mutation, which needs a key (contract 2.9). */
export const requireKeyForPrice = (
  params: UpdateProduct,
  callerKey: string | undefined
): Effect.Effect<void, ValidationFailed> =>
  params.default_price_data !== undefined && callerKey === undefined
    ? new ValidationFailed({
        message:
          "idempotency-key in the headers is missing; default_price_data needs it, since a new price is a financial mutation.",
        fields: ["idempotency-key"]
      })
    : Effect.void
