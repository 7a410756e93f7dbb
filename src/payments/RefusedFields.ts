import type { ProviderObjectNotFound, ProviderRequestRefused } from "../platform/errors/Errors.ts"
import { objectKinds } from "./ObjectKinds.ts"
import type { ProviderCallFailure } from "./ProviderErrors.ts"
import { objectNotFound, requestRefused } from "./RefusalReasons.ts"

/**
 * The API's names for the provider's fields, by path prefix: the provider's `applies_to.products.0` is `products.0` to
 * callers. Null if callers have no such field.
 */
export type FieldNames = Readonly<Record<string, string | null>>

/** The provider's names, by object type, for the id in a path, which is `id` to callers. */
export const pathIdNames: FieldNames = Object.fromEntries(
  [...Object.keys(objectKinds), "coupon", "intent", "subscription_exposed_id"].map((name) => [name, "id"])
)

const renamed = (fields: ReadonlyArray<string>, names: FieldNames): ReadonlyArray<string> => {
  // The longest matching prefix wins
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

/** Renames the refused fields of a failure to the API's names (contract 12.3). */
export const inOurNames =
  (names: FieldNames) =>
  <E extends ProviderCallFailure>(failure: E): E | ProviderRequestRefused | ProviderObjectNotFound => {
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
