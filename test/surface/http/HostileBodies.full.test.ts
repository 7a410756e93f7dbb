import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Effect, Option, Predicate, type Schema, SchemaAST } from "effect"
import { maxJsonBytes } from "../../../src/server/Body.ts"
import { operations } from "../../../src/surface/contract/Api.ts"
import { operationKey } from "../../../src/surface/contract/Operations.ts"
import { makeTools } from "../../../src/surface/mcp/Tools.ts"
import { processorTime, takesLess } from "../../harness/ProcessorTime.ts"
import { onSharedServiceWithMail, signInOwner } from "../../harness/SignIn.ts"
import { TestService, testPublicUrl } from "../../harness/TestService.ts"
import { unrefined } from "../contract/RequestParts.ts"

/**
 * The worst bodies that fit into the bound of a body: each is refused without work that others would feel. Measured in
 * the process's processor time, this test's own side included, beside that of harmless bodies on the same machine.
 */

/** How many harmless bodies a body may cost. Ten times what such a body takes; without bounds each kind takes ten times more. */
const maxHarmless = 400
const maxMegabytes = 50

/** Of a test in milliseconds: they send hundreds of such bodies. */
const limit = 400_000

type Body = readonly [name: string, json: string]

/** As many copies of a piece as fit into so many characters. */
const filled = (room: number, piece: string): string =>
  `${`${piece},`.repeat(Math.floor(room / (piece.length + 1)) - 1)}${piece}`

/** A value that is wrong on as many levels as its bounds let anybody reach. */
const busy = (ast: SchemaAST.AST): unknown => {
  const base = unrefined(ast)
  if (SchemaAST.isTupleType(base)) {
    return Array.from({ length: 90 }, () => busy(base.rest[0]?.type ?? SchemaAST.unknownKeyword))
  }
  if (!SchemaAST.isTypeLiteral(base)) return "\u0000"
  const known = base.propertySignatures.map(({ name, type }) => [String(name), busy(type)] as const)
  const pairs = base.indexSignatures.flatMap(() => Array.from({ length: 90 }, (_, n) => [`[${n}`, 0] as const))
  return Object.fromEntries([...known, ...pairs, ["unknown", 0]])
}

const halves = (count: number): string => `${'"\\ud800",'.repeat(count - 1)}"\\ud800"`

const harmless = JSON.stringify({ nothing: "x".repeat(maxJsonBytes - 1000) })

const manyKeys = JSON.stringify(Object.fromEntries(Array.from({ length: 15_000 }, (_, n) => [`k${n}`, n])))

/** A value, or if it is too long as JSON, its parts by themselves, and of a list as much as fits. */
const inRoom = (value: unknown, room: number): ReadonlyArray<unknown> => {
  const length = JSON.stringify(value).length
  if (length <= room) return [value]
  if (Array.isArray(value)) return [value.slice(0, Math.ceil((value.length * room) / length) - 1)]
  return Predicate.isRecord(value)
    ? Object.entries(value).flatMap(([name, part]) => inRoom(part, room - 64).map((piece) => ({ [name]: piece })))
    : [value]
}

/**
 * Bodies for an object of these fields, put where the arguments are.
 *
 * @param known the schemas of fields that others had before: what is read by the same schema is attacked once
 */
const bodiesFor = (
  schema: Schema.Schema.All,
  known: Set<SchemaAST.AST>,
  wrap: (json: string) => string = (json) => json
): ReadonlyArray<Body> => {
  const ast = SchemaAST.encodedAST(schema.ast)
  const base = unrefined(ast)
  const signatures = SchemaAST.isTypeLiteral(base) ? base.propertySignatures : []
  const fields = signatures.filter(({ type }) => !known.has(type)).map(({ name }) => String(name))
  for (const { type } of signatures) known.add(type)
  const room = maxJsonBytes - wrap("").length - 64
  return [
    ["a long key around half characters", wrap(`{"${"k".repeat(room / 2)}":[${halves(12_000)}]}`)],
    ["a hundred of those", wrap(`{"${"k".repeat(room - 2_000)}":[${halves(99)}]}`)],
    ["many keys", wrap(manyKeys)],
    ["deep arrays", wrap("[".repeat(room / 2) + "]".repeat(room / 2))],
    ...inRoom(busy(ast), room).map((piece): Body => ["all that may be wrong at once", wrap(JSON.stringify(piece))]),
    [
      "a thousand values of nothing",
      wrap(JSON.stringify(Array.from({ length: 30 }, () => Array.from({ length: 30 }, () => ({})))))
    ],
    ...fields.flatMap(
      (field): ReadonlyArray<Body> => [
        ...['"payments:x"', "{}"].map(
          (piece): Body => [`${field}: many times ${piece}`, wrap(`{"${field}":[${filled(room - 64, piece)}]}`)]
        ),
        [
          `${field}: a hundred objects of unknown keys`,
          wrap(
            JSON.stringify({
              [field]: Array.from({ length: 99 }, () => ({ a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7, h: 8 }))
            })
          )
        ],
        [
          `${field}: a hundred long texts`,
          wrap(JSON.stringify({ [field]: Array.from({ length: 99 }, () => "x".repeat(room / 100 - 4)) }))
        ],
        [
          `${field}: a long text with a wrong end`,
          wrap(JSON.stringify({ [field]: `${"a".repeat(room - field.length - 20)}<` }))
        ]
      ]
    )
  ]
}

type Send = Effect.Effect<{ readonly status: number; readonly text: string }>

/** What a body may cost, in milliseconds of processor time. */
const boundBy = (harmless: Send) =>
  Effect.map(processorTime(Effect.replicateEffect(harmless, 100)), (took) => (took * maxHarmless) / 100)

const attack = (bound: number, what: string, send: Send, expected: ReadonlyArray<number>) =>
  Effect.gen(function* () {
    const heap = process.memoryUsage().heapUsed
    const sent = Effect.tap(send, ({ status, text }) => {
      expect(expected, `${what} ${text.slice(0, 200)}`).toContain(status)
      expect(text.length, `${what}: ${text.slice(0, 200)}`).toBeLessThan(20_000)
    })
    expect(yield* takesLess(bound, sent), `${what} takes less than ${bound} ms`).toBe(true)
    expect((process.memoryUsage().heapUsed - heap) / 2 ** 20, `${what}: MB`).toBeLessThan(maxMegabytes)
  })

onSharedServiceWithMail("a body made to cost much", (it) => {
  const withBody = operations.filter(
    ({ endpoint, path }) => Option.isSome(endpoint.payloadSchema) && !path.startsWith("/webhooks/")
  )

  it.effect(
    "is refused by every operation at little cost, in a small answer",
    function* () {
      const { organization, request } = yield* TestService
      const { cookie } = yield* signInOwner
      const known = new Set<SchemaAST.AST>()
      let bound: number | undefined
      for (const { endpoint, method, path } of withBody) {
        const id = path.includes("/provider/") ? "prod_nothing" : randomUUID()
        const url = path.replace(":organizationId", organization.id).replaceAll(/:\w+/g, id)
        const identity = path.startsWith("/identity")
        const schema = Option.getOrThrow(endpoint.payloadSchema)
        const send = (raw: string) =>
          request(method, url, {
            ...(identity ? {} : { key: organization.testKey }),
            raw,
            headers: {
              "content-type": "application/json",
              "idempotency-key": randomUUID(),
              ...(identity ? { cookie, origin: testPublicUrl } : {})
            }
          })
        bound ??= yield* boundBy(send(harmless))
        for (const [name, raw] of bodiesFor(schema, known)) {
          const what = `${operationKey(method, path)}: ${name}`
          expect(raw.length, what).toBeLessThanOrEqual(maxJsonBytes)
          yield* attack(bound, what, send(raw), [404, 409, 422])
        }
      }
    },
    limit
  )

  it.effect(
    "is refused by every tool at little cost, in a small answer",
    function* () {
      const { organization, request, services } = yield* TestService
      const tools = yield* Effect.provide(makeTools, services)
      // Those that read take a few flat fields, so one of them stands for all
      const attacked = [...tools.values()].filter(
        ({ listed, name }) => listed.annotations?.readOnlyHint !== true || name === "list_prices"
      )
      expect(attacked.length).toBeGreaterThan(20)
      const known = new Set<SchemaAST.AST>()
      let bound: number | undefined
      for (const { input, listed } of attacked) {
        const wrap = (json: string) =>
          `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${listed.name}","arguments":${json}}}`
        const send = (raw: string) =>
          request("POST", "/mcp", {
            key: organization.testKey,
            raw,
            headers: { "content-type": "application/json", accept: "application/json, text/event-stream" }
          })
        bound ??= yield* boundBy(send(wrap(harmless)))
        for (const [name, raw] of bodiesFor(input, known, wrap)) {
          yield* attack(bound, `${listed.name}: ${name}`, send(raw), [200, 422])
        }
      }
    },
    limit
  )
})
