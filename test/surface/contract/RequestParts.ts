import { Option, Schema, SchemaAST } from "effect"
import { Filters } from "../../../src/events/Filters.ts"
import { operations } from "../../../src/surface/contract/Api.ts"
import { operationKey } from "../../../src/surface/contract/Operations.ts"
import type { Tools } from "../../../src/surface/mcp/Tools.ts"

/** All that callers write: every part of every operation's request, by its schema. */

/** What a caller writes in one place of a request. */
export interface RequestPart {
  readonly name: string
  readonly place: "body" | "path" | "query" | "header"
  readonly method: string
  readonly path: string
  readonly schema: Schema.Schema.AnyNoContext
}

/** Judged by their handlers: bytes that are signed, and files and pages whose unknown names are all answered 404. */
const unjudged = new Set([
  "POST /webhooks/provider",
  "POST /webhooks/provider/thin",
  "GET /product-images/:file",
  "GET /pay/:slug",
  "POST /pay/:slug",
  "GET /pay/:slug/thanks"
])

export const requestParts: ReadonlyArray<RequestPart> = operations
  .filter(({ method, path }) => !unjudged.has(operationKey(method, path)))
  .flatMap(({ endpoint, method, path }) =>
    (
      [
        ["body", endpoint.payloadSchema],
        ["path", endpoint.pathSchema],
        ["query", endpoint.urlParamsSchema],
        ["header", endpoint.headersSchema]
      ] as const
    ).flatMap(([place, schema]) =>
      Option.match(schema, {
        onNone: () => [],
        // What decodes a request needs nothing of its surroundings
        onSome: ({ ast }) => [
          { name: `${operationKey(method, path)} ${place}`, place, method, path, schema: Schema.make(ast) }
        ]
      })
    )
  )

/** Every schema that judges what a caller writes, the filters' own included, and those of the tools. */
export const requestSchemas = (tools: Tools): ReadonlyArray<readonly [name: string, ast: SchemaAST.AST]> => [
  ...requestParts.map(({ name, schema }) => [name, schema.ast] as const),
  ["filters", Filters.ast],
  ...[...tools.values()].map(({ input, listed }) => [`tool ${listed.name}`, input.ast] as const)
]

/** The AST that lies under refinements. */
export const unrefined = (ast: SchemaAST.AST): SchemaAST.AST =>
  SchemaAST.isRefinement(ast) ? unrefined(ast.from) : ast

/** The refinements around an AST, the innermost first: the order in which they judge. */
export const refinementsOf = (ast: SchemaAST.AST): ReadonlyArray<SchemaAST.Refinement> =>
  SchemaAST.isRefinement(ast) ? [...refinementsOf(ast.from), ast] : []

/** What a refinement says of itself in JSON Schema. */
export const saidOf = (ast: SchemaAST.AST): Readonly<Record<string, unknown>> =>
  Option.match(SchemaAST.getJSONSchemaAnnotation(ast), { onNone: () => ({}), onSome: (said) => ({ ...said }) })

/** Every AST within an AST that judges what was written, itself included; of transformations both sides. */
export function* partsOf(ast: SchemaAST.AST, path: string): Generator<readonly [path: string, ast: SchemaAST.AST]> {
  yield [path, ast]
  const base = unrefined(ast)
  switch (base._tag) {
    case "TypeLiteral":
      for (const { name, type } of base.propertySignatures) yield* partsOf(type, `${path}.${String(name)}`)
      for (const { parameter, type } of base.indexSignatures) {
        yield* partsOf(parameter, `${path} key`)
        yield* partsOf(type, `${path}.*`)
      }
      return
    case "TupleType":
      for (const { type } of base.rest) yield* partsOf(type, `${path}[]`)
      return
    case "Union":
      for (const type of base.types) yield* partsOf(type, path)
      return
    case "Transformation":
      yield* partsOf(base.from, path)
      yield* partsOf(base.to, path)
      return
    case "Declaration":
      for (const parameter of base.typeParameters) yield* partsOf(parameter, path)
  }
}
