import { Predicate, Schema } from "effect"
import { Metadata, type ProviderObject } from "../Schemas.ts"

/**
 * The metadata that marks sessions and payment links as created by this service: it records what they sell, and if a crash
 * prevented that, it can ask the provider.
 */
export const checkoutMarker = { key: "svc_source", value: "connected-payments" } as const

/** Whether an object's metadata marks it as created by this service. */
export const isMarked = ({ metadata }: ProviderObject): boolean =>
  Predicate.isRecord(metadata) && metadata[checkoutMarker.key] === checkoutMarker.value

/** The metadata of sessions and payment links: one of the provider's 50 pairs is the service's own. */
export const CheckoutMetadata = Metadata.pipe(
  Schema.filter(
    (pairs) => [
      ...(Object.keys(pairs).length > 49 ? [{ path: [], message: "must have at most 49 pairs" }] : []),
      ...(Object.hasOwn(pairs, checkoutMarker.key)
        ? [{ path: [checkoutMarker.key], message: "is a key that the service keeps for itself" }]
        : [])
    ],
    { jsonSchema: { maxProperties: 49, not: { required: [checkoutMarker.key] } } }
  )
).annotations({ description: "Up to 49 pairs; keys up to 40 characters without brackets, values up to 500" })
