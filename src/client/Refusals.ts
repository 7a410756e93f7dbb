import { documented, ProviderRequestRefused } from "../contract/index.ts"

/**
 * The provider's refusals of parameters whose codes are documented, each under a tag of its own to the client; a refusal
 * under any other code stays a `ProviderRequestRefused`. A further code gets a tag with a new version of the client alone.
 */

/** The amount is more than the provider takes in this currency; `fields` says which. */
export class ProviderAmountTooLarge extends documented("ProviderAmountTooLarge", {
  status: 422,
  code: "provider_amount_too_large",
  settles: "refused",
  message: "The amount is more than the payment provider takes in this currency."
}) {}

/** What was to be created exists already, such as an active promotion code; `fields` says which value is taken. */
export class ProviderResourceAlreadyExists extends documented("ProviderResourceAlreadyExists", {
  status: 422,
  code: "provider_resource_already_exists",
  settles: "refused",
  message: "The payment provider has such an object already."
}) {}

const refusals = [ProviderAmountTooLarge, ProviderResourceAlreadyExists] as const

type Refusal = InstanceType<(typeof refusals)[number]>

/** The errors of an operation as the client fails with them: those of the contract, the documented refusals apart. */
export type Failure<E> = E extends ProviderRequestRefused ? E | Refusal : E

/** Tells the documented refusals apart by their codes; every other failure is left as it is. */
export const tellApart = (failure: unknown): unknown => {
  if (!(failure instanceof ProviderRequestRefused)) return failure
  const { code, fields, message, requestId } = failure
  const known = refusals.find(({ documentation }) => documentation.code === code)
  return known === undefined ? failure : new known({ code, fields, message, requestId })
}
