import { Option, SchemaAST } from "effect"
import { EventType, eventData } from "../../events/Catalog.ts"

/**
 * The consumer kit's types of `data`, written from the catalog: the kit can't infer them from the schemas, since it
 * depends on nothing, so that it can be copied alone.
 */

/** The path of the module that holds them, from `src`. */
export const webhookTypesPath = "webhooks/EventData.ts"

const lineWidth = 120

/** A docstring, on several lines if it is longer than one. */
const docstring = (text: string, indent: string): string => {
  const short = `${indent}/** ${text} */`
  if (short.length <= lineWidth) return short
  const lines: Array<string> = []
  let line = `${indent} *`
  for (const word of text.split(" ")) {
    if (`${line} ${word}`.length > lineWidth) {
      lines.push(line)
      line = `${indent} *`
    }
    line += ` ${word}`
  }
  return [`${indent}/**`, ...lines, line, `${indent} */`].join("\n")
}

const isNull = (ast: SchemaAST.AST): boolean => SchemaAST.isLiteral(ast) && ast.literal === null

/** The members of a nullable type except `null`; any other type itself. */
const withoutNull = (ast: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> =>
  SchemaAST.isUnion(ast) ? ast.types.filter((member) => !isNull(member)) : [ast]

/** The catalog's own sentence about a field, not one of the library, such as "a string". */
const descriptionOf = (ast: SchemaAST.AST): string | undefined =>
  [ast, ...withoutNull(ast)]
    .map((one) => Option.getOrUndefined(SchemaAST.getDescriptionAnnotation(one)))
    .find((text) => text !== undefined && !/^an? /.test(text))

/** A schema's type in TypeScript. Only the forms that the catalog uses are known; any other is a defect. */
const typeOf = (ast: SchemaAST.AST, indent: string): string => {
  switch (ast._tag) {
    case "StringKeyword":
      return "string"
    case "NumberKeyword":
      return "number"
    case "BooleanKeyword":
      return "boolean"
    case "Literal":
      return JSON.stringify(ast.literal)
    case "Refinement":
      return typeOf(ast.from, indent)
    case "Union":
      return ast.types.map((member) => typeOf(member, indent)).join(" | ")
    case "TypeLiteral":
      return objectOf(ast, indent)
    case "TupleType": {
      const [item, ...others] = ast.rest
      if (item !== undefined && others.length === 0 && ast.elements.length === 0) {
        return `ReadonlyArray<${typeOf(item.type, indent)}>`
      }
    }
  }
  throw new Error(`The consumer's kit has no form for this type of a field: ${ast}`)
}

const objectOf = ({ indexSignatures, propertySignatures }: SchemaAST.TypeLiteral, indent: string): string => {
  const [values] = indexSignatures
  if (values !== undefined) return `{ readonly [key: string]: ${typeOf(values.type, indent)} }`
  const inner = `${indent}  `
  const fields = propertySignatures.flatMap(({ name, type }) => {
    const description = descriptionOf(type)
    return [
      ...(description === undefined ? [] : [docstring(description, inner)]),
      `${inner}readonly ${String(name)}: ${typeOf(type, inner)}`
    ]
  })
  return ["{", ...fields, `${indent}}`].join("\n")
}

interface DataType {
  readonly name: string
  readonly ast: SchemaAST.AST
  readonly types: ReadonlyArray<EventType>
}

/** Each form of `data` once, with its event types. */
const dataTypes: ReadonlyArray<DataType> = [...new Set(EventType.literals.map((type) => eventData[type].ast))].map(
  (ast) => ({
    ast,
    name: Option.getOrThrow(SchemaAST.getIdentifierAnnotation(ast)),
    types: EventType.literals.filter((type) => eventData[type].ast === ast)
  })
)

const interfaceOf = ({ ast, name, types }: DataType): string => {
  const described = `${descriptionOf(ast)}: \`data\` of ${types.map((type) => `\`${type}\``).join(", ")}.`
  return `${docstring(described, "")}\nexport interface ${name} ${typeOf(ast, "")}\n`
}

const nameOf = (type: EventType): string => dataTypes.find(({ types }) => types.includes(type))?.name ?? ""

export const webhookTypes = (): string =>
  [
    "// Written by `npm run docs` from the catalog of events: change the catalog, not this file\n",
    ...dataTypes.map(interfaceOf),
    "/** The type of `data` for each event type of the catalog. */",
    "export interface WebhookEventData {",
    ...EventType.literals.map((type) => `  readonly "${type}": ${nameOf(type)}`),
    "}\n",
    "/** The types that this version of the kit knows. */",
    "export const knownTypes: { readonly [Type in keyof WebhookEventData]: true } = {",
    EventType.literals.map((type) => `  "${type}": true`).join(",\n"),
    "}\n"
  ].join("\n")
