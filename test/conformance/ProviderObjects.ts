import { FastCheck, Predicate } from "effect"
import type { Json, ProviderDefinitions } from "./ProviderSchemas.ts"

/*
 * Objects of the provider's, made up from the types of its package: every field that there is, expanded or not, null or
 * left out where the types allow that, with a canary in every free text.
 */

/** Part of every free text of a made-up object: what shows it outside has let it out. */
export const canary = "LEAK"

/** Objects within objects are left out below this depth, where the types allow it. A line of an invoice is at 3. */
const maxDepth = 5

/** How likely a field that may be left out is there, and an object that may be left out or be an id. */
const likelihood = (depth: number): number => [0.8, 0.6, 0.5, 0.4, 0.3][depth] ?? 0.1

/** Types that need an object within an object without end would be a mistake of the definitions. */
const deepest = 12

const knownTexts: ReadonlyArray<readonly [name: RegExp, values: ReadonlyArray<string>]> = [
  [/(^|_)currency$/, ["brl", "usd", "jpy", "eur"]]
]

/** Numbers that can't be negative: times, counts. Amounts can. */
const counted = /(^created|_at|_on|_date|_start|_end|_count|^quantity|_deadline|_time)$/

/** Chooses by a seed: the same seed makes the same object. */
class Chooser {
  private state: number
  private texts = 0

  constructor(seed: number) {
    this.state = seed | 0
  }

  /** Mulberry32: evenly spread, and quick enough for objects of thousands of values. */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  below(bound: number): number {
    return Math.floor(this.next() * bound)
  }

  happens(probability: number): boolean {
    return this.next() < probability
  }

  of<A>(values: ReadonlyArray<A>): A {
    const value = values[this.below(values.length)]
    if (value === undefined) throw new Error("Nothing to choose from")
    return value
  }

  /** A text like no other of the object's. */
  text(name: string): string {
    this.texts += 1
    return `${name}_${canary}_${this.texts}${this.of(["", " é", '"\\', "@example.com", "\u0000\ud800"])}`
  }

  number(name: string): number {
    const number = this.below(10 ** this.below(13))
    return counted.test(name) || this.happens(0.8) ? number : -number
  }
}

const record = (value: unknown): Json => (Predicate.isRecord(value) ? value : {})

const recordsIn = (value: unknown): ReadonlyArray<Json> => (Array.isArray(value) ? value.map(record) : [])

class Maker {
  private readonly definitions: Readonly<Record<string, Json>>
  private readonly choose: Chooser

  constructor(definitions: Readonly<Record<string, Json>>, choose: Chooser) {
    this.definitions = definitions
    this.choose = choose
  }

  value(schema: Json, name: string, depth: number): unknown {
    if ("const" in schema) return schema["const"]
    if (Array.isArray(schema["anyOf"]))
      return this.value(this.alternative(recordsIn(schema["anyOf"]), depth), name, depth)
    if (typeof schema["$ref"] === "string") return this.object(schema["$ref"], depth)
    switch (schema["type"]) {
      case "string":
        return this.text(schema, name)
      case "number":
        return this.choose.number(name)
      case "null":
        return null
      case "array":
        return this.items(record(schema["items"]), name, depth)
      default:
        return this.choose.of([null, true, this.choose.text(name), { [this.choose.text(name)]: 1 }])
    }
  }

  /** The deeper, the rather the one without further objects is taken: null, or the id in place of the object. */
  private alternative(schemas: ReadonlyArray<Json>, depth: number): Json {
    const deep = schemas.filter((schema) => "$ref" in schema || schema["type"] === "array")
    const shallow = schemas.filter((schema) => !deep.includes(schema))
    const goesDeep = depth < maxDepth && this.choose.happens(likelihood(depth))
    return this.choose.of(deep.length > 0 && (goesDeep || shallow.length === 0) ? deep : shallow)
  }

  private text(schema: Json, name: string): string {
    if (typeof schema["pattern"] === "string") return this.choose.of(["12", "0.5", "-3.25"])
    const known = knownTexts.find(([pattern]) => pattern.test(name))
    return known === undefined ? this.choose.text(name) : this.choose.of(known[1])
  }

  private items(schema: Json, name: string, depth: number): ReadonlyArray<unknown> {
    const length = depth >= maxDepth && "$ref" in schema ? 0 : this.choose.below(3)
    return Array.from({ length }, () => this.value(schema, name, depth))
  }

  object(reference: string, depth: number): Json {
    const definition = record(this.definitions[reference.replace("#/definitions/", "")])
    if (depth > deepest) throw new Error(`${reference} needs itself without end`)
    const required = new Set(Array.isArray(definition["required"]) ? definition["required"] : [])
    const object: Record<string, unknown> = {}
    for (const [name, schema] of Object.entries(record(definition["properties"]))) {
      if (required.has(name) || this.choose.happens(likelihood(depth))) {
        object[name] = this.value(record(schema), name, depth + 1)
      }
    }
    // Keys of the caller's own, such as those of metadata
    if (Predicate.isRecord(definition["additionalProperties"])) {
      const schema = definition["additionalProperties"]
      const count = this.choose.below(3)
      for (let n = 0; n < count; n++) object[this.choose.text("key")] = this.value(schema, "value", depth + 1)
    }
    return object
  }
}

/** A field that the types do not know, in some of the objects, at every depth. */
const withUnknownFields = (value: unknown, choose: Chooser): unknown => {
  if (Array.isArray(value)) return value.map((item) => withUnknownFields(item, choose))
  if (!Predicate.isRecord(value)) return value
  const known = Object.entries(value).map(([key, part]) => [key, withUnknownFields(part, choose)] as const)
  const unknown = choose.happens(0.3)
    ? [[choose.text("x"), choose.of([choose.text("x"), { a: choose.text("x") }])]]
    : []
  return Object.fromEntries([...known, ...unknown])
}

export interface ProviderObject {
  readonly exact: Json
  readonly extended: Json
}

/** Made-up objects of the types that there are definitions of. A failure shows the object, which its seed makes again. */
export const providerObjects =
  <Name extends string>({ definitionOf, definitions }: ProviderDefinitions<Name>) =>
  (name: Name): FastCheck.Arbitrary<ProviderObject> =>
    FastCheck.noShrink(FastCheck.integer()).map((seed) => {
      const choose = new Chooser(seed)
      const exact = new Maker(definitions, choose).object(definitionOf(name), 0)
      return { exact, extended: record(withUnknownFields(exact, choose)) }
    })
