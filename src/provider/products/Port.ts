import type { ConnectedAccount, ProviderCall, WriteOptions } from "../ProviderCall.ts"
import type { ProviderObject, ProviderPage } from "../Schemas.ts"
import type { CreateProduct, ListProducts, UpdateProduct } from "./Api.ts"

/** A change of a product. A new default price is created first, since the provider takes only its id here. */
export type ProductChanges = Omit<UpdateProduct, "default_price_data">

/** The provider's operations on products. */
export interface ProductsPort {
  readonly createProduct: (
    account: ConnectedAccount,
    params: CreateProduct,
    options: WriteOptions
  ) => ProviderCall<ProviderObject>
  /** Absent fields stay as they are; an empty list or text removes the current value. */
  readonly updateProduct: (
    account: ConnectedAccount,
    id: string,
    changes: ProductChanges,
    options: WriteOptions
  ) => ProviderCall<ProviderObject>
  /** With `default_price` as an object, as in the answers to changes and in lists. */
  readonly retrieveProduct: (account: ConnectedAccount, id: string) => ProviderCall<ProviderObject>
  readonly listProducts: (account: ConnectedAccount, params: ListProducts) => ProviderCall<ProviderPage>
}
