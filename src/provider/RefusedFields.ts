import type { ProviderObjectNotFound, ProviderRequestRefused } from "../Errors.ts"
import type { AccountAccessRevoked, ProviderFailure } from "./ProviderErrors.ts"
import { objectNotFound, requestRefused } from "./RefusalReasons.ts"

/**
 * Other names for the fields of a refusal, by the path that they begin with: what the provider calls
 * `applies_to.products.0` is `products.0` to callers. Null where callers have no such field.
 */
export type FieldNames = Readonly<Record<string, string | null>>

/** What the provider calls the id in a path, which is `id` to callers: some kinds of objects have a name of their own. */
export const pathIdNames: FieldNames = Object.fromEntries(
  [
    "charge",
    "coupon",
    "intent",
    "payment_intent",
    "payment_link",
    "payout",
    "price",
    "product",
    "promotion_code",
    "session",
    "subscription",
    "subscription_exposed_id"
  ].map((name) => [name, "id"])
)

const renamed = (fields: ReadonlyArray<string>, names: FieldNames): ReadonlyArray<string> => {
  // The longest beginning decides
  const known = Object.entries(names).toSorted(([a], [b]) => b.length - a.length)
  const ours = fields.flatMap((field) => {
    const found = known.find(([path]) => path === "" || field === path || field.startsWith(`${path}.`))
    if (found === undefined) {
      return [field]
    }
    const [path, name] = found
    if (name === null) {
      return []
    }
    return [path === "" ? `${name}.${field}` : `${name}${field.slice(path.length)}`]
  })
  return [...new Set(ours)]
}

/** A failure with the fields that it refuses under the names that callers know them by (contract 12.3). */
export const inOurNames =
  (names: FieldNames) =>
  <E extends ProviderFailure | AccountAccessRevoked>(
    failure: E
  ): E | ProviderRequestRefused | ProviderObjectNotFound => {
    if (failure._tag === "ProviderRequestRefused") {
      const { cause, code, fields } = failure
      return requestRefused({ cause, code, fields: renamed(fields, names) })
    }
    if (failure._tag === "ProviderObjectNotFound") {
      const { cause, fields } = failure
      return objectNotFound({ cause, fields: renamed(fields, names) })
    }
    return failure
  }
