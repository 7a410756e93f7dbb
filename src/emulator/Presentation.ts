import { Effect } from "effect"
import { type ProviderError, refuse } from "./ProviderError.ts"
import type { Kind } from "./Records.ts"
import type { Scoped } from "./Store.ts"

/** What kind of object an answer is, as far as expanding its fields goes. */
export type Shape =
  | "account"
  | "product"
  | "price"
  | "checkout.session"
  | "item"
  | "payment_intent"
  | "charge"
  | "event"
  | "deleted"

/** How a field that names further objects behaves. */
type Field =
  /** Holds an id, or the object where that was asked for. */
  | { readonly how: "reference"; readonly shape: Shape & Kind }
  /** Always holds the object. */
  | { readonly how: "embedded"; readonly shape: Shape }
  /** Kept with the object but shown only where asked for. */
  | { readonly how: "hidden" }
  /** A list that is no field of the stored object; shown only where asked for. */
  | {
      readonly how: "list"
      readonly shape: Shape
      readonly load: (objects: Scoped, id: string) => ReadonlyArray<object>
      readonly url: (id: string) => string
    }

const fields: { readonly [S in Shape]: Readonly<Record<string, Field>> } = {
  account: {},
  charge: { payment_intent: { how: "reference", shape: "payment_intent" } },
  "checkout.session": {
    line_items: {
      how: "list",
      shape: "item",
      load: (objects, id) => objects.get("order", id)?.items ?? [],
      url: (id) => `/v1/checkout/sessions/${id}/line_items`
    },
    payment_intent: { how: "reference", shape: "payment_intent" }
  },
  deleted: {},
  event: {},
  item: { price: { how: "embedded", shape: "price" } },
  payment_intent: { latest_charge: { how: "reference", shape: "charge" } },
  price: { product: { how: "reference", shape: "product" }, tiers: { how: "hidden" } },
  product: { default_price: { how: "reference", shape: "price" } }
}

/** The fields to expand, as a tree of their names. */
export interface Expansion {
  readonly [field: string]: Expansion
}

/** Nothing expanded. */
export const unexpanded: Expansion = {}

/** What an answer is: an object of a shape, or a page of such objects. */
export type AnswerShape = { readonly object: Shape } | { readonly listOf: Shape }

/** The provider's bound on the parts of an expansion path. */
const maximumDepth = 4

/** Items that an expanded list shows; the rest is to be fetched from the list's own URL. */
const includedItems = 10

const step = (at: AnswerShape | undefined, part: string): AnswerShape | "leaf" | undefined => {
  if (at === undefined) return undefined
  if ("listOf" in at) return part === "data" ? { object: at.listOf } : undefined
  const known = fields[at.object]
  const field = Object.hasOwn(known, part) ? known[part] : undefined
  if (field === undefined) return undefined
  if (field.how === "hidden") return "leaf"
  return field.how === "list" ? { listOf: field.shape } : { object: field.shape }
}

const isExpandable = (shape: AnswerShape, path: ReadonlyArray<string>): boolean => {
  let at: AnswerShape | "leaf" | undefined = shape
  for (const part of path) {
    at = at === "leaf" ? undefined : step(at, part)
    if (at === undefined) return false
  }
  return true
}

const add = (tree: Expansion, [head, ...rest]: ReadonlyArray<string>): Expansion =>
  head === undefined ? tree : { ...tree, [head]: add(tree[head] ?? unexpanded, rest) }

/** Checks the paths of an `expand` parameter against what such an answer can hold; 400 where it cannot. */
export const parseExpansion = (
  shape: AnswerShape,
  paths: ReadonlyArray<string>
): Effect.Effect<Expansion, ProviderError> => {
  const tooDeep = paths.find((path) => path.split(".").length > maximumDepth)
  if (tooDeep !== undefined) {
    return Effect.fail(
      refuse({
        param: "expand",
        message: `You cannot expand more than ${maximumDepth} levels of a property: ${tooDeep}`
      })
    )
  }
  const refused = paths.find((path) => !isExpandable(shape, path.split(".")))
  return refused === undefined
    ? Effect.succeed(paths.reduce((tree, path) => add(tree, path.split(".")), unexpanded))
    : Effect.fail(refuse({ param: "expand", message: `This property cannot be expanded (${refused}).` }))
}

type Plain = Readonly<Record<string, unknown>>

const isPlain = (value: unknown): value is Plain => typeof value === "object" && value !== null && !Array.isArray(value)

const presentField = (objects: Scoped, field: Field, value: unknown, owner: Plain, expansion: Expansion): unknown => {
  switch (field.how) {
    case "hidden":
      return value
    case "embedded":
      return isPlain(value) ? present(objects, field.shape, value, expansion) : value
    case "reference": {
      const target = typeof value === "string" ? objects.get(field.shape, value) : undefined
      return target === undefined ? value : present(objects, field.shape, target, expansion)
    }
    case "list": {
      const id = String(owner["id"])
      const items = field.load(objects, id)
      return {
        object: "list",
        data: items
          .slice(0, includedItems)
          .map((item) => present(objects, field.shape, item, expansion["data"] ?? unexpanded)),
        has_more: items.length > includedItems,
        url: field.url(id)
      }
    }
  }
}

/** A stored object as the provider shows it: ids where nothing was asked for, objects where it was. */
export const present = (objects: Scoped, shape: Shape, value: object, expansion: Expansion): Plain => {
  const shown: Record<string, unknown> = { ...value }
  for (const [name, field] of Object.entries(fields[shape])) {
    const asked = Object.hasOwn(expansion, name) ? expansion[name] : undefined
    if (asked !== undefined || field.how === "embedded") {
      if (field.how === "list" || name in shown) {
        shown[name] = presentField(objects, field, shown[name], shown, asked ?? unexpanded)
      }
    } else if (field.how === "hidden") {
      delete shown[name]
    }
  }
  return shown
}

/** The same for an answer, which may be a page of objects. */
export const presentAnswer = (objects: Scoped, shape: AnswerShape, value: object, expansion: Expansion): Plain => {
  if ("object" in shape) return present(objects, shape.object, value, expansion)
  const page: Plain = { ...value }
  const data = Array.isArray(page["data"]) ? page["data"] : []
  return {
    ...page,
    data: data.map((item: object) => present(objects, shape.listOf, item, expansion["data"] ?? unexpanded))
  }
}
