import { Effect } from "effect"
import { invalid, type ProviderError } from "../ProviderError.ts"
import type { Kind } from "../Records.ts"
import type { Scoped } from "../store/Store.ts"
import { type Field, type Fields, fieldsOf, type Shape } from "./Shapes.ts"

export interface Expansion {
  readonly [field: string]: Expansion
}

export const unexpanded: Expansion = {}

export type AnswerShape = { readonly object: Shape } | { readonly listOf: Shape }

/** The provider's bound on the parts of an expansion path. */
const maximumDepth = 4

/** Items that an expanded list shows; clients fetch the rest from the list's own URL. */
const includedItems = 10

const own = (fields: Fields, name: string): Field | undefined =>
  Object.hasOwn(fields, name) ? fields[name] : undefined

/** The field that a part of a path leads to. */
const step = (at: Field | undefined, part: string): Field | undefined => {
  switch (at?.how) {
    case "list":
    case "items":
      return part === "data" ? { how: "embedded", shape: at.shape } : undefined
    case "part":
      return own(at.fields, part)
    case "reference":
    case "embedded":
      return own(fieldsOf(at.shape), part)
    default:
      return undefined
  }
}

const isExpandable = (answer: AnswerShape, path: string): boolean => {
  const root: Field =
    "object" in answer ? { how: "embedded", shape: answer.object } : { how: "items", shape: answer.listOf }
  const at = path.split(".").reduce<Field | undefined>(step, root)
  return at !== undefined && at.how !== "part"
}

const add = (tree: Expansion, [head, ...rest]: ReadonlyArray<string>): Expansion =>
  head === undefined ? tree : { ...tree, [head]: add(tree[head] ?? unexpanded, rest) }

/** Checks the paths of an `expand` parameter against the fields of the answer; fails with 400 for an unknown field. */
export const parseExpansion = (
  shape: AnswerShape,
  paths: ReadonlyArray<string>
): Effect.Effect<Expansion, ProviderError> => {
  const tooDeep = paths.find((path) => path.split(".").length > maximumDepth)
  if (tooDeep !== undefined) {
    return invalid("expand", `You cannot expand more than ${maximumDepth} levels of a property: ${tooDeep}`)
  }
  const refused = paths.find((path) => !isExpandable(shape, path))
  return refused === undefined
    ? Effect.succeed(paths.reduce((tree, path) => add(tree, path.split(".")), unexpanded))
    : invalid("expand", `This property cannot be expanded (${refused}).`)
}

export type Plain = Readonly<Record<string, unknown>>

export const isPlain = (value: unknown): value is Plain =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const each = (value: unknown, change: (one: unknown) => unknown): unknown =>
  Array.isArray(value) ? value.map(change) : change(value)

const presentItems = (objects: Scoped, shape: Shape, items: ReadonlyArray<unknown>, expansion: Expansion) =>
  items
    .slice(0, includedItems)
    .map((item) => (isPlain(item) ? present(objects, shape, item, expansion["data"] ?? unexpanded) : item))

const variantOf = (objects: Scoped, shapes: ReadonlyArray<Kind>, id: unknown): unknown => {
  for (const shape of shapes) {
    const target = typeof id === "string" ? objects.get(shape, id) : undefined
    if (target !== undefined) return present(objects, shape, target, unexpanded)
  }
  return id
}

type ListField = Extract<Field, { readonly how: "list" }>

const presentList = (objects: Scoped, { load, shape, url }: ListField, owner: string, expansion: Expansion): Plain => {
  const items = load(objects, owner)
  const data = presentItems(objects, shape, items, expansion)
  return { object: "list", data, has_more: items.length > includedItems, url: url(owner) }
}

const presentField = (
  objects: Scoped,
  field: Exclude<Field, ListField>,
  value: unknown,
  expansion: Expansion
): unknown => {
  switch (field.how) {
    case "hidden":
      return value
    case "embedded":
      return isPlain(value) ? present(objects, field.shape, value, expansion) : value
    case "part":
      return each(value, (one) => (isPlain(one) ? presentFields(objects, field.fields, one, expansion) : one))
    case "variant":
      return variantOf(objects, field.shapes, value)
    case "reference":
      return each(value, (id) => {
        const target = typeof id === "string" ? objects.get(field.shape, id) : undefined
        return target === undefined ? id : present(objects, field.shape, target, expansion)
      })
    case "items": {
      const items = isPlain(value) && Array.isArray(value["data"]) ? value["data"] : []
      const data = presentItems(objects, field.shape, items, expansion)
      return isPlain(value) ? { ...value, data, has_more: items.length > includedItems } : value
    }
  }
}

/** Whether a field holds objects that are presented even if they are not expanded. */
const isAlwaysShown = ({ how }: Field): boolean => how === "embedded" || how === "items" || how === "part"

const presentFields = (objects: Scoped, fields: Fields, value: object, expansion: Expansion): Plain => {
  const shown: Record<string, unknown> = { ...value }
  for (const [name, field] of Object.entries(fields)) {
    const asked = Object.hasOwn(expansion, name) ? expansion[name] : undefined
    if (asked === undefined && !isAlwaysShown(field)) {
      if (field.how === "hidden") delete shown[name]
    } else if (field.how === "list") {
      shown[name] = presentList(objects, field, String(shown["id"]), asked ?? unexpanded)
    } else if (name in shown) {
      shown[name] = presentField(objects, field, shown[name], asked ?? unexpanded)
    }
  }
  return inOrder(shown)
}

/** The provider's order of fields: the id, the kind, then all others by name. */
const inOrder = (fields: Plain): Plain => {
  const place = (name: string) => (name === "id" || name === "object" ? ` ${name}` : name)
  return Object.fromEntries(Object.entries(fields).toSorted(([a], [b]) => (place(a) < place(b) ? -1 : 1)))
}

export const present = (objects: Scoped, shape: Shape, value: object, expansion: Expansion): Plain =>
  presentFields(objects, fieldsOf(shape), value, expansion)

export const presentAnswer = (objects: Scoped, shape: AnswerShape, value: object, expansion: Expansion): Plain => {
  if ("object" in shape) return present(objects, shape.object, value, expansion)
  const page: Plain = { ...value }
  const data = Array.isArray(page["data"]) ? page["data"] : []
  return {
    ...page,
    data: data.map((item: object) => present(objects, shape.listOf, item, expansion["data"] ?? unexpanded))
  }
}
