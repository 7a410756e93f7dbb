import type { Environment } from "../platform/kit/Environment.ts"

/** The kinds of the provider's objects that requests name, which the prefixes of their ids tell apart. */

interface ObjectKind {
  /** With its article. */
  readonly called: string
  /** The usual prefix comes first. */
  readonly prefixes: readonly [string, ...ReadonlyArray<string>]
  /** An id, for the documents. */
  readonly example: string
}

/** By the names that the provider's parameters have. */
export const objectKinds = {
  charge: { called: "a charge", prefixes: ["ch", "py"], example: "ch_Q1w2E3r4T5y6" },
  customer: { called: "a customer", prefixes: ["cus"], example: "cus_Q1w2E3r4T5y6" },
  dispute: { called: "a dispute", prefixes: ["dp", "du"], example: "dp_Q1w2E3r4T5y6" },
  payment_intent: { called: "a payment intent", prefixes: ["pi"], example: "pi_Q1w2E3r4T5y6" },
  payment_link: { called: "a payment link", prefixes: ["plink"], example: "plink_Q1w2E3r4T5y6" },
  payout: { called: "a payout", prefixes: ["po"], example: "po_Q1w2E3r4T5y6" },
  price: { called: "a price", prefixes: ["price", "plan"], example: "price_Q1w2E3r4T5y6" },
  product: { called: "a product", prefixes: ["prod"], example: "prod_Q1w2E3r4T5y6" },
  promotion_code: { called: "a promotion code", prefixes: ["promo"], example: "promo_Q1w2E3r4T5y6" },
  refund: { called: "a refund", prefixes: ["re", "pyr"], example: "re_Q1w2E3r4T5y6" },
  session: { called: "a checkout session", prefixes: ["cs"], example: "cs_test_Q1w2E3r4T5y6" },
  subscription: { called: "a subscription", prefixes: ["sub"], example: "sub_Q1w2E3r4T5y6" }
} as const satisfies Readonly<Record<string, ObjectKind>>

export type ObjectKindName = keyof typeof objectKinds

const kindNames = Object.keys(objectKinds) as ReadonlyArray<ObjectKindName>

/** The kind of object that a field takes, by the last name in its path: `products.0` is a product's id. */
export const kindTakenBy = (field: string): ObjectKindName | undefined => {
  const name = field.split(".").findLast((part) => !/^\d+$/.test(part)) ?? ""
  const taken = { default_price: "price", intent: "payment_intent", products: "product" }[name] ?? name
  return kindNames.find((kind) => kind === taken)
}

const kindOfId = (id: string): ObjectKindName | undefined =>
  kindNames.find((kind) => objectKinds[kind].prefixes.some((prefix) => id.startsWith(`${prefix}_`)))

/** The field of one kind of object that has the id of another kind. */
const leads: { readonly [Given in ObjectKindName]?: { readonly [Taken in ObjectKindName]?: string } } = {
  charge: { payment_intent: "payment_intent" },
  payment_intent: { charge: "latest_charge" },
  product: { price: "default_price" },
  session: { payment_intent: "payment_intent", subscription: "subscription" }
}

export interface Named {
  readonly path?: unknown
  readonly urlParams?: unknown
  readonly payload?: unknown
}

const valueAt = (part: unknown, field: string): unknown =>
  field.split(".").reduce((value, key) => (typeof value === "object" ? Object(value)[key] : undefined), part)

/**
 * Why the account has no object with the id in a field, if the id tells: it is of another kind, or of the other
 * environment. Completes a sentence that begins with the field's name.
 *
 * @param param the provider's name for the field, which says whose `id` is in a path
 */
export const mistakenId = (
  { path, payload, urlParams }: Named,
  { environment, field, param }: { readonly environment: Environment; readonly field: string; readonly param: string }
): string | undefined => {
  const id = valueAt(payload, field) ?? valueAt(urlParams, field) ?? valueAt(path, field)
  if (typeof id !== "string") return undefined
  const taken = kindTakenBy(field === "id" ? param : field)
  const given = kindOfId(id)
  if (given === undefined || taken === undefined) return undefined
  if (given !== taken) {
    const { called, prefixes } = objectKinds[taken]
    const lead = leads[given]?.[taken]
    return `must be the id of ${called} (${prefixes[0]}_…), but this one is of ${objectKinds[given].called}${lead === undefined ? "" : `, which has the right one as \`${lead}\``}`
  }
  const [, mode] = /^[a-z]+_(live|test)_/.exec(id) ?? []
  const home = mode === "live" ? "production" : "sandbox"
  return mode === undefined || home === environment
    ? undefined
    : `is an id of the ${home} environment, and this request is for ${environment}`
}
