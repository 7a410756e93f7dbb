import { expect } from "@effect/vitest"
import { Effect, Option, Schema, SchemaAST } from "effect"
import { jsonBounds } from "../../../src/platform/bounds/JsonBounds.ts"
import { makeTools } from "../../../src/surface/mcp/Tools.ts"
import { processorTime, takesLess } from "../../harness/ProcessorTime.ts"
import { onSharedService, TestService } from "../../harness/TestService.ts"
import { partsOf, refinementsOf, requestSchemas, saidOf, unrefined } from "./RequestParts.ts"

const schemas = Effect.flatMap(TestService, ({ services }) =>
  Effect.map(Effect.provide(makeTools, services), requestSchemas)
)

const patternOf = (ast: SchemaAST.AST): RegExp | undefined => {
  const said = Option.getOrUndefined(SchemaAST.getAnnotation<{ readonly regex?: RegExp }>(Schema.PatternSchemaId)(ast))
  return said?.regex
}

const isLowercased = (ast: SchemaAST.AST): boolean =>
  Option.contains(SchemaAST.getSchemaIdAnnotation(ast), Schema.LowercasedSchemaId)

/** What the chains of strings in a schema are made of: each refinement with the ones that judge before it. */
const judgements = (ast: SchemaAST.AST, name: string) =>
  [...partsOf(ast, name)]
    .filter(([, part]) => SchemaAST.isStringKeyword(unrefined(part)))
    .map(([path, part]) => ({ path, refinements: refinementsOf(part) }))

const heads = ["", "https://", "prod_", "a@a", "2026-01-31T09:30:00."]
const units = ["a", "0", "_", " ", "a.", "a-", " a", "é"]
const tails = ["", "\u0000", "<", "["]

/** Far beyond the fields' own bounds, so that a square shows: it takes a hundred times what a line does. */
const length = 16_384

const texts = heads.flatMap((head) =>
  units.flatMap((unit) => tails.map((tail) => `${head}${unit.repeat(length / unit.length)}${tail}`))
)

/** Its work grows with the square of the text. */
const square = /^[^<>]*[A-Za-z][^<>]*$/

const test = (pattern: RegExp, text: string) => Effect.sync(() => pattern.test(text))

/** Whether there is a long text that a pattern goes back and forth on, as `square` does in this many milliseconds. */
const isSlow = (atSquare: number) => (pattern: RegExp) =>
  Effect.exists(texts, (text) => Effect.negate(takesLess(atSquare / 10, test(pattern, text))))

onSharedService("what callers write", (it) => {
  it.effect("is bounded in length, text by text, before anything else judges it", function* () {
    const unbounded = (yield* schemas).flatMap(([name, ast]) =>
      judgements(ast, name)
        // Lower case is what a text is made that was judged before
        .filter(({ refinements }) => !refinements.every(isLowercased))
        .filter(({ refinements: [first] }) => first === undefined || typeof saidOf(first)["maxLength"] !== "number")
        .map(({ path }) => path)
    )
    expect(unbounded).toEqual([])
  })

  it.effect("is judged by patterns whose work grows with the text alone", function* () {
    const patterns = new Map(
      (yield* schemas).flatMap(([name, ast]) =>
        judgements(ast, name).flatMap(({ refinements }) =>
          refinements.flatMap((refinement) => {
            const pattern = patternOf(refinement)
            return pattern === undefined ? [] : [[pattern.source, pattern] as const]
          })
        )
      )
    )
    expect(patterns.size).toBeGreaterThan(10)
    const atSquare = yield* processorTime(test(square, `${"a".repeat(length)}<`))
    expect((yield* Effect.filter(patterns.values(), isSlow(atSquare))).map(({ source }) => source)).toEqual([])
    // That such a pattern would be found
    expect(yield* isSlow(atSquare)(square)).toBe(true)
  })

  it.effect("fits the bounds of JSON bodies wherever the contract takes it", function* () {
    for (const [name, ast] of yield* schemas) {
      for (const [path, part] of partsOf(ast, name)) {
        const base = unrefined(part)
        const said = Object.assign({}, ...refinementsOf(part).map(saidOf))
        if (SchemaAST.isTupleType(base)) {
          expect(Number(said["maxItems"]), path).toBeLessThanOrEqual(jsonBounds.members)
        }
        if (SchemaAST.isTypeLiteral(base) && base.indexSignatures.length > 0 && !path.endsWith(".filters")) {
          expect(Number(said["maxProperties"]), path).toBeLessThanOrEqual(jsonBounds.members)
        }
      }
    }
  })
})
