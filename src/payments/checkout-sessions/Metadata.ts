import { Predicate } from "effect"
import { text } from "../../platform/bounds/Text.ts"
import { MetadataChange, MetadataValue, mergedMetadata, type ProviderObject, pairsOf } from "../Schemas.ts"

/** Marks sessions and links that this service created: it can read their items from the provider after a crash. */
export const checkoutMarker = { key: "svc_source", value: "connected-payments" } as const

export const pageKey = "svc_checkout_page"

const reserved = "svc_"

export const isMarked = ({ metadata }: ProviderObject): boolean =>
  Predicate.isRecord(metadata) && metadata[checkoutMarker.key] === checkoutMarker.value

export const ownPairs = ({ metadata }: ProviderObject): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(Predicate.isRecord(metadata) ? metadata : {}).flatMap(([key, value]) =>
      key.startsWith(reserved) || typeof value !== "string" ? [] : [[key, value] as const]
    )
  )

/** Keys that leave the reserved prefix somewhere; without lookahead, for the document's readers. */
const ownKeys = [...reserved].map((next, at) => `${reserved.slice(0, at)}(?:[^${next}[\\]][^[\\]]*)?`)

const OwnKey = text({
  min: 1,
  max: 40,
  pattern: new RegExp(`^(?:${ownKeys.join("|")})$`),
  rule: `must have a key of 1 to 40 characters, without [ and ], that does not begin with ${reserved}: the service keeps those for itself`
}).annotations({
  arbitrary: () => (fc) => fc.stringMatching(/^[^[\]]{1,40}$/).filter((key) => !key.startsWith(reserved))
})

/** One of the provider's 50 pairs is the service's own. Checkout pages' sessions have two, but none of a caller's. */
const mostPairs = 49

export const CheckoutMetadata = pairsOf(OwnKey, MetadataValue, mostPairs).annotations({
  identifier: "CheckoutMetadata",
  description: `Up to ${mostPairs} pairs; keys up to 40 characters without brackets, not beginning with \`${reserved}\`, values up to 500`
})

/** A change of such metadata. The service's own pairs are unchanged. */
export const CheckoutMetadataChanges = pairsOf(OwnKey, MetadataChange, mostPairs).annotations({
  identifier: "CheckoutMetadataChanges",
  description: `${mergedMetadata}. Keys that begin with \`${reserved}\` are the service's own`
})
