import type { SqlClient } from "@effect/sql"
import { Layer } from "effect"
import { ReturnUrls } from "../identity/return-urls/ReturnUrls.ts"
import { Accounts } from "./Accounts.ts"
import { CheckoutSessions } from "./checkout-sessions/CheckoutSessions.ts"
import type { Provider } from "./Provider.ts"
import { Prices } from "./prices/Prices.ts"

export type ProviderServices = Accounts | CheckoutSessions | Prices | ReturnUrls

export const providerServicesLayer: Layer.Layer<ProviderServices, never, Provider | SqlClient.SqlClient> =
  CheckoutSessions.layer.pipe(
    Layer.provideMerge(Prices.layer),
    Layer.provideMerge(Layer.mergeAll(Accounts.layer, ReturnUrls.layer))
  )
