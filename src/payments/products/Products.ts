import { Effect } from "effect"
import { ValidationFailed } from "../../platform/errors/Errors.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import { Accounts } from "../Accounts.ts"
import { Provider } from "../Provider.ts"
import type { ConnectedAccount, KeyFor, WriteOptions } from "../ProviderCall.ts"
import { isRefusal, type ProviderCallFailure } from "../ProviderErrors.ts"
import { inOurNames, objectNotFound } from "../RefusalReasons.ts"
import type { UpdateProduct } from "./Api.ts"

/** Maps a refusal of the new default price to the change's fields: an unknown product is the `id` in the path. */
const asRefusalOfProduct = (failure: ProviderCallFailure): ProviderCallFailure =>
  failure._tag === "ProviderRequestRefused" &&
  failure.code === "provider_resource_missing" &&
  failure.fields.includes("product")
    ? objectNotFound({ fields: ["id"], cause: failure.cause })
    : inOurNames({ "": "default_price_data" })(failure)

export const makeProducts = Effect.gen(function* () {
  const provider = yield* Provider
  const accounts = yield* Accounts

  const replaceDefaultPrice = Effect.fnUntraced(function* (
    account: ConnectedAccount,
    id: string,
    { default_price_data, ...changes }: UpdateProduct & Required<Pick<UpdateProduct, "default_price_data">>,
    key: (step: string) => WriteOptions
  ) {
    const price = yield* provider
      .createPrice(account, { ...default_price_data, product: id }, key("price"))
      .pipe(Effect.mapError(asRefusalOfProduct))
    const priceId = String(price["id"])
    return yield* provider.updateProduct(account, id, { ...changes, default_price: priceId }, key("product")).pipe(
      Effect.mapError(inOurNames({ default_price: "default_price_data" })),
      Effect.tapError((failure) =>
        isRefusal(failure)
          ? Effect.catchIf(
              provider.updatePrice(account, priceId, { active: false }, key("undo")),
              isRefusal,
              () => Effect.void
            )
          : Effect.void
      )
    )
  })

  /**
   * Changes a product. A new default price is created first, and deactivated again if the change is refused. A repeat
   * under the same key completes what a crash or a lost answer interrupted, and creates nothing twice.
   */
  const update = Effect.fn("Products.update")(function* (
    tenant: Tenant,
    id: string,
    params: UpdateProduct,
    keyFor: KeyFor
  ) {
    return yield* accounts.use(tenant, (account) => {
      const key = (step: string) => keyFor(account, step)
      const { default_price_data, ...changes } = params
      return default_price_data === undefined
        ? provider.updateProduct(account, id, changes, key("product"))
        : replaceDefaultPrice(account, id, { ...changes, default_price_data }, key)
    })
  })

  return { update }
})

/** Requires an idempotency key for a new price, which is a financial mutation (contract 2.9). */
export const requireKeyForPrice = (
  params: UpdateProduct,
  callerKey: string | undefined
): Effect.Effect<void, ValidationFailed> =>
  params.default_price_data !== undefined && callerKey === undefined
    ? new ValidationFailed({
        message:
          "`idempotency-key` in the headers is missing; `default_price_data` needs it, since a new price is a financial mutation.",
        fields: ["idempotency-key"]
      })
    : Effect.void
