import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { Predicate } from "effect"
import type typescript from "../../node_modules/ts-json-schema-generator/node_modules/typescript/lib/typescript.js"

/*
 * JSON Schemas of the provider's objects and parameters, made from the types of the installed `stripe` package when the
 * tests run.
 *
 * What the wire has and the types have not: a decimal is a string, a `void` property is absent. A property that the
 * types do not know is refused, and so is a word outside the known ones, although the provider may add to them.
 */

export type Json = Readonly<Record<string, unknown>>

const require = createRequire(import.meta.url)

// The generator's own TypeScript: the project's newer one has no checker to be called
const ts: typeof typescript = createRequire(require.resolve("ts-json-schema-generator"))("typescript")

// Of the package's two builds `require` finds the other one
const types = join(dirname(dirname(require.resolve("stripe"))), "esm")
const resources = join(types, "resources")

/** Turns types into definitions. An object type becomes a reference, so that types that contain themselves come to an end. */
class Walk {
  readonly definitions: Record<string, Json> = {}
  private readonly names = new Map<typescript.Type, string>()
  private readonly checker: typescript.TypeChecker

  constructor(checker: typescript.TypeChecker) {
    this.checker = checker
  }

  /** The schema of a type: in place for what has no name, by reference for an object. */
  schemaOf(type: typescript.Type): Json {
    if (type.isUnion()) return this.unionOf(type)
    if (type.isStringLiteral() || type.isNumberLiteral()) return { const: type.value }
    if (type.flags & ts.TypeFlags.BooleanLiteral) return { const: this.checker.typeToString(type) === "true" }
    if (type.flags & ts.TypeFlags.String) return { type: "string" }
    if (type.flags & ts.TypeFlags.Number) return { type: "number" }
    if (type.flags & ts.TypeFlags.Null) return { type: "null" }
    if (type.flags & ts.TypeFlags.Any || type.flags & ts.TypeFlags.Unknown) return {}
    if (this.isOtherWord(type)) return { type: "string" }
    if (this.isDecimal(type)) return { type: "string", pattern: "^-?\\d+(\\.\\d+)?$" }
    if (this.checker.isArrayType(type)) {
      return { type: "array", items: this.schemaOf(this.elementOf(type)) }
    }
    return { $ref: `#/definitions/${this.nameOf(type)}` }
  }

  /** `string & {}`: the place that the types keep for words to come. */
  private isOtherWord(type: typescript.Type): boolean {
    return type.isIntersection() && type.types.some(({ flags }) => (flags & ts.TypeFlags.String) !== 0)
  }

  private isDecimal(type: typescript.Type): boolean {
    return (type.aliasSymbol ?? type.symbol)?.name === "Decimal"
  }

  private elementOf(type: typescript.Type): typescript.Type {
    const element = this.checker.getIndexTypeOfType(type, ts.IndexKind.Number)
    if (element === undefined) throw new Error(`An array without elements: ${this.checker.typeToString(type)}`)
    return element
  }

  private unionOf(type: typescript.UnionType): Json {
    const members = type.types.filter(({ flags }) => (flags & (ts.TypeFlags.Undefined | ts.TypeFlags.Void)) === 0)
    const hasWords = members.some((member) => member.isStringLiteral())
    const known = hasWords ? members.filter((member) => !this.isOtherWord(member)) : members
    const schemas = known.map((member) => this.schemaOf(member))
    return schemas.length === 1 && schemas[0] !== undefined ? schemas[0] : { anyOf: schemas }
  }

  /** The name of the definition of an object type; makes it where there is none yet. */
  nameOf(type: typescript.Type): string {
    const known = this.names.get(type)
    if (known !== undefined) return known
    const name = `${type.symbol?.name ?? "Type"}_${this.names.size}`
    this.names.set(type, name)
    this.definitions[name] = this.objectOf(type)
    return name
  }

  private objectOf(type: typescript.Type): Json {
    const properties: Record<string, Json> = {}
    const required: Array<string> = []
    for (const property of this.checker.getPropertiesOfType(type)) {
      const of = this.checker.getTypeOfSymbol(property)
      if (of.getCallSignatures().length > 0 || this.isAbsent(of)) continue
      properties[property.name] = this.schemaOf(of)
      if ((property.flags & ts.SymbolFlags.Optional) === 0) required.push(property.name)
    }
    const index = this.checker.getIndexTypeOfType(type, ts.IndexKind.String)
    return {
      type: "object",
      properties,
      required,
      additionalProperties: index === undefined ? this.isOpen(type) : this.schemaOf(index)
    }
  }

  /** `deleted?: void` on an object that is not deleted. */
  private isAbsent(type: typescript.Type): boolean {
    const parts = type.isUnion() ? type.types : [type]
    return parts.every(({ flags }) => (flags & (ts.TypeFlags.Undefined | ts.TypeFlags.Void)) !== 0)
  }

  /** An interface without properties says nothing about its objects. */
  private isOpen(type: typescript.Type): boolean {
    return this.checker.getPropertiesOfType(type).length === 0
  }
}

export interface ProviderType {
  /** The file under `resources`, without extension: `Checkout/Sessions`. */
  readonly file: string
  /** The exported name in it, namespaces included: `Session`, `Checkout.SessionCreateParams`. */
  readonly name: string
}

/** Checks a value: the problems found, none where it fits. */
export type Check = (value: unknown) => ReadonlyArray<string>

/**
 * Reads a value by a schema, in the words that {@link Walk} uses and no others. The package's types come to thousands of
 * definitions: to compile a validator of them takes many times as long as reading them does.
 */
class Reading {
  private readonly definitions: Readonly<Record<string, Json>>

  constructor(definitions: Readonly<Record<string, Json>>) {
    this.definitions = definitions
  }

  problems(value: unknown, schema: Json, path: string): ReadonlyArray<string> {
    if ("const" in schema) return value === schema["const"] ? [] : [`${path} is not ${JSON.stringify(schema["const"])}`]
    if (Array.isArray(schema["anyOf"])) return this.ofAny(value, schema["anyOf"], path)
    if (typeof schema["$ref"] === "string") return this.problems(value, this.definition(schema["$ref"]), path)
    switch (schema["type"]) {
      case "string":
        return typeof value === "string" && matches(value, schema["pattern"]) ? [] : [`${path} is no such text`]
      case "number":
        return typeof value === "number" && Number.isFinite(value) ? [] : [`${path} is no number`]
      case "null":
        return value === null ? [] : [`${path} is not null`]
      case "array":
        return Array.isArray(value)
          ? value.flatMap((item, n) => this.problems(item, asSchema(schema["items"]), `${path}/${n}`))
          : [`${path} is no array`]
      case "object":
        return Predicate.isRecord(value) && !Array.isArray(value)
          ? this.ofObject(value, schema, path)
          : [`${path} is no object`]
      default:
        if (Object.keys(schema).length > 0) throw new Error(`A schema of no known kind: ${JSON.stringify(schema)}`)
        return []
    }
  }

  private definition(reference: string): Json {
    return asSchema(this.definitions[reference.replace("#/definitions/", "")])
  }

  private ofAny(value: unknown, schemas: ReadonlyArray<unknown>, path: string): ReadonlyArray<string> {
    const found: Array<string> = []
    for (const schema of schemas) {
      const problems = this.problems(value, asSchema(schema), path)
      if (problems.length === 0) return []
      found.push(...problems)
    }
    return [`${path} is none of ${schemas.length}`, ...found]
  }

  private ofObject(object: Json, schema: Json, path: string): ReadonlyArray<string> {
    const properties = asSchema(schema["properties"])
    const required: unknown = schema["required"]
    const missing = (Array.isArray(required) ? required : []).filter((name) => object[name] === undefined)
    return [
      ...missing.map((name) => `${path} has no ${name}`),
      ...Object.entries(object).flatMap(([name, value]) => {
        // Absent on the wire
        if (value === undefined) return []
        const further = schema["additionalProperties"]
        if (Object.hasOwn(properties, name)) return this.problems(value, asSchema(properties[name]), `${path}/${name}`)
        if (typeof further === "boolean") return further ? [] : [`${path} has an unknown ${name}`]
        return this.problems(value, asSchema(further), `${path}/${name}`)
      })
    ]
  }
}

const asSchema = (value: unknown): Json => {
  if (!Predicate.isRecord(value)) throw new Error(`Not a schema: ${JSON.stringify(value)}`)
  return value
}

const matches = (text: string, pattern: unknown): boolean =>
  typeof pattern !== "string" || new RegExp(pattern).test(text)

const exportOf = (
  checker: typescript.TypeChecker,
  module: typescript.Symbol | undefined,
  { file, name }: ProviderType
): typescript.Symbol => {
  let symbol = module
  for (const part of name.split(".")) {
    symbol = symbol && checker.getExportsOfModule(symbol).find((one) => one.name === part)
  }
  if (symbol === undefined) throw new Error(`The installed stripe package has no type ${name} in ${file}`)
  return symbol
}

let program: typescript.Program | undefined

/** Reading the package takes some seconds: what a worker's first file has read serves the others. */
const readPackage = (): typescript.Program => {
  program ??= ts.createProgram([join(types, "stripe.esm.node.d.ts")], {
    exactOptionalPropertyTypes: true,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    noEmit: true,
    skipLibCheck: true,
    strict: true,
    target: ts.ScriptTarget.ES2022,
    // Without the browser's, which would be most of what there is to read
    lib: ["lib.es2022.d.ts"],
    types: []
  })
  return program
}

export interface ProviderDefinitions<Name extends string> {
  readonly definitions: Readonly<Record<string, Json>>
  readonly definitionOf: (name: Name) => string
}

export const providerDefinitions = <Name extends string>(
  wanted: Readonly<Record<Name, ProviderType>>
): ProviderDefinitions<Name> => {
  const program = readPackage()
  const checker = program.getTypeChecker()
  const walk = new Walk(checker)
  const references = new Map<string, string>()
  for (const [name, type] of Object.entries<ProviderType>(wanted)) {
    const source = program.getSourceFile(join(resources, `${type.file}.d.ts`))
    const module = source && checker.getSymbolAtLocation(source)
    references.set(name, walk.nameOf(checker.getDeclaredTypeOfSymbol(exportOf(checker, module, type))))
  }
  return {
    definitions: walk.definitions,
    definitionOf: (name) => {
      const definition = references.get(name)
      if (definition === undefined) throw new Error(`No definition was made for ${name}`)
      return definition
    }
  }
}

export const checksOf = <Name extends string>({
  definitionOf,
  definitions
}: ProviderDefinitions<Name>): ((name: Name) => Check) => {
  const reading = new Reading(definitions)
  return (name) => {
    const schema = asSchema(definitions[definitionOf(name)])
    return (value) => reading.problems(value, schema, "")
  }
}

export const providerChecks = <Name extends string>(
  wanted: Readonly<Record<Name, ProviderType>>
): ((name: Name) => Check) => checksOf(providerDefinitions(wanted))
