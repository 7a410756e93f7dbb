import { documented, ProviderRequestRefused } from "../surface/contract/index.ts"

/**
 * The provider's refusals of parameters with documented codes, each with a tag of its own in the client; a refusal with
 * any other code stays a `ProviderRequestRefused`. Further codes get a tag only with a new version of the client.
 */

/** The amount is more than the provider accepts in this currency; `fields` says which. */
export class ProviderAmountTooLarge extends documented("ProviderAmountTooLarge", "refused", {
  status: 422,
  message: "The amount is more than the payment provider accepts in this currency.",
  why: "The provider has an upper limit for amounts in this currency, and the request exceeds it.",
  remedy: "Lower the amount that `fields` names, or split it."
}) {}

/** The object to create exists already, such as an active promotion code; `fields` says which value is taken. */
export class ProviderResourceAlreadyExists extends documented("ProviderResourceAlreadyExists", "refused", {
  status: 422,
  message: "The payment provider already has such an object.",
  why: "The object to create exists already; `fields` names the value that is taken.",
  remedy: "Use the existing object, or choose another value."
}) {}

const refusals = [ProviderAmountTooLarge, ProviderResourceAlreadyExists] as const

export type Refusal = InstanceType<(typeof refusals)[number]>

/** The errors of an operation in the client: those of the contract, with the documented refusals as separate types. */
export type Failure<E> = E extends ProviderRequestRefused ? E | Refusal : E

/** Maps the documented refusals to their own types by code; every other failure stays as it is. */
export const tellApart = (failure: unknown): unknown => {
  if (!(failure instanceof ProviderRequestRefused)) return failure
  const { code, fields, message, requestId } = failure
  const known = refusals.find(({ documentation }) => documentation.code === code)
  return known === undefined ? failure : new known({ code, fields, message, requestId })
}
