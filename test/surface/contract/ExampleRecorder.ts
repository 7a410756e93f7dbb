import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Effect, Option } from "effect"
import { documentedErrors } from "../../../src/platform/errors/Errors.ts"
import { operations } from "../../../src/surface/contract/Api.ts"
import type { Operation } from "../../../src/surface/contract/Operations.ts"
import { type Example, exampleIdempotencyKey } from "../../../src/surface/docs/OpenApiDocument.ts"
import type { Answer, RequestOptions, TestService } from "../../harness/TestService.ts"

export interface Recording {
  readonly exchanges: ReadonlyArray<{ readonly group: string; readonly name: string; readonly example: Example }>
  /** Answers of refused requests by the error's tag. */
  readonly refusals: Readonly<Record<string, unknown>>
  /** Texts of this run, and what they are in the examples. */
  readonly replaced: ReadonlyMap<string, string>
}

export type Parameter = string | number | boolean | ReadonlyArray<string>

/** A call's path and query parameters, what it sends beside a body, and what it must answer. */
export interface Call extends RequestOptions {
  readonly parameters?: Readonly<Record<string, Parameter>>
  readonly form?: Readonly<Record<string, string>>
  /** Default: any 2xx. */
  readonly status?: number
}

const operationNamed = (key: string): Operation => {
  const found = operations.find(({ group, name }) => `${group}.${name}` === key)
  if (found === undefined) throw new Error(`There is no operation ${key}`)
  return found
}

const urlOf = (path: string, parameters: Readonly<Record<string, Parameter>>): string => {
  const inPath = new Set([...path.matchAll(/:(\w+)/g)].map(([, name]) => name))
  const query = Object.entries(parameters).filter(([name]) => !inPath.has(name))
  const search = new URLSearchParams(
    query.flatMap(([name, value]) => [value].flat().map((one): [string, string] => [name, String(one)]))
  )
  const filled = path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(String(parameters[name])))
  return query.length === 0 ? filled : `${filled}?${search}`
}

const isPage = (answer: Answer) => /^(?:text\/html|image\/)/.test(answer.headers.get("content-type") ?? "")

const answerOf = (answer: Answer): unknown =>
  answer.headers.get("content-type")?.startsWith("text/event-stream") === true ? answer.text : answer.json

export const makeRecorder = (service: TestService["Type"]) => {
  const exchanges: Array<Recording["exchanges"][number]> = []
  const refusals: Record<string, unknown> = {}
  const replaced = new Map<string, string>()
  /** A request that is no example: under a key that no other has. */
  const send = (key: string, { form, parameters = {}, ...options }: Call, idempotencyKey: string = randomUUID()) => {
    const operation = operationNamed(key)
    return service.request(operation.method, urlOf(operation.path, parameters), {
      ...options,
      ...(form === undefined ? {} : { raw: new URLSearchParams(form).toString() }),
      headers: {
        ...(Option.isSome(operation.endpoint.headersSchema) ? { "idempotency-key": idempotencyKey } : {}),
        ...(form === undefined ? {} : { "content-type": "application/x-www-form-urlencoded" }),
        ...options.headers
      }
    })
  }

  const call = (key: string, options: Call = {}): Effect.Effect<Answer> =>
    Effect.gen(function* () {
      const { group, name } = operationNamed(key)
      const answer = yield* send(key, options, exampleIdempotencyKey(group, name))
      const { body, form, parameters, raw, status } = options
      if (status === undefined) expect(Math.floor(answer.status / 100), `${key} ${answer.text}`).toBe(2)
      else expect(answer.status, `${key} ${answer.text}`).toBe(status)
      const request = body ?? form ?? (typeof raw === "string" ? JSON.parse(raw) : undefined)
      exchanges.push({
        group,
        name,
        example: {
          ...(parameters === undefined ? {} : { parameters }),
          ...(request === undefined ? {} : { request }),
          ...(answer.text === "" || isPage(answer) ? {} : { answer: answerOf(answer) })
        }
      })
      return answer
    })

  /** A request that is refused, kept under the tag of the error. */
  const refused = (tag: string, key: string, options: Call = {}): Effect.Effect<void> =>
    Effect.map(send(key, options), (answer) => {
      const known = documentedErrors.find((errorClass) => errorClass.tag === tag)?.documentation
      expect([answer.status, tag], answer.text).toEqual([known?.status, tag])
      expect(String(answer.json["code"])).toMatch(new RegExp(`^${known?.code.replace(/<.*>/, ".+")}$`))
      refusals[tag] = answer.json
    })
  return { call, exchanges, refusals, refused, replaced, send }
}

export type Recorder = ReturnType<typeof makeRecorder>
