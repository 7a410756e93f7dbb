import { OpenApi } from "@effect/platform"
import { Predicate } from "effect"
import { documentedErrors } from "../../platform/errors/Errors.ts"
import { Api, operations } from "../contract/Api.ts"
import { describedIn, recordIn } from "../contract/Document.ts"
import type { Operation } from "../contract/Operations.ts"

/** The operations as a table for people: what each needs and which errors it may return, from the contract. */

const providerPrefix = "/v2/organizations/:organizationId/provider"
const managementPrefix = "/v2/organizations/:organizationId/integrations"

interface Row {
  readonly operation: Operation
  readonly summary: string
  /** Whether it needs a signed-in person and accepts no key. */
  readonly signedIn: boolean
  /** Whether any key will do. */
  readonly anyKey: boolean
  readonly idempotency: "required" | "optional" | ""
  /** The codes of the errors that it declares. */
  readonly codes: ReadonlySet<string>
}

/** The names of the component schemas that a part of the document refers to. */
const referencesIn = (value: unknown): ReadonlyArray<string> =>
  Predicate.isRecord(value) || Array.isArray(value)
    ? Object.entries(value).flatMap(([key, part]) =>
        key === "$ref" && typeof part === "string" ? [part.replace("#/components/schemas/", "")] : referencesIn(part)
      )
    : []

const codeOf = new Map(documentedErrors.map(({ documentation, tag }) => [tag, documentation.code]))

const idempotencyOf = (parameters: unknown): Row["idempotency"] => {
  const key = Array.isArray(parameters)
    ? parameters.map((one: unknown) => recordIn(one)).find(({ name }) => name === "idempotency-key")
    : undefined
  return key === undefined ? "" : key["required"] === true ? "required" : "optional"
}

const rowsOf = (document: unknown): ReadonlyArray<Row> =>
  operations.map((operation) => {
    const { parameters, responses, summary } = describedIn(document, operation)
    const alone = operation.permission === undefined ? operation.credentials : []
    return {
      operation,
      summary: String(summary ?? ""),
      signedIn: alone.includes("session"),
      anyKey: alone.includes("apiKey"),
      idempotency: idempotencyOf(parameters),
      codes: new Set(referencesIn(responses).flatMap((name) => codeOf.get(name) ?? []))
    }
  })

interface ErrorSet {
  readonly name: string
  readonly codes: ReadonlySet<string>
}

/** The codes that all of these rows have, except those of `without`. */
const shared = (name: string, rows: ReadonlyArray<Row>, without: ReadonlyArray<ErrorSet>): ErrorSet => {
  const [first, ...others] = rows
  const codes = [...(first?.codes ?? [])].filter((code) => others.every((row) => row.codes.has(code)))
  return { name, codes: new Set(codes.filter((code) => !without.some((set) => set.codes.has(code)))) }
}

const errorSets = (rows: ReadonlyArray<Row>): ReadonlyArray<ErrorSet> => {
  const every = shared("every operation", rows, [])
  const keys = rows.filter(({ operation }) => operation.permission !== undefined)
  const people = rows.filter(({ signedIn }) => signedIn)
  const provider = rows.filter(({ codes }) => codes.has("provider_timeout"))
  const credential = shared("credential", keys, [every])
  const ownKey = rows.filter(({ anyKey }) => anyKey)
  return [
    every,
    credential,
    shared("session", people, [every]),
    shared("provider", provider, [every, credential]),
    shared("key", ownKey, [every])
  ]
}

const contains = (codes: ReadonlySet<string>, part: ReadonlySet<string>): boolean =>
  [...part].every((one) => codes.has(one))

const code = (text: string): string => `\`${text}\``

const pathOf = ({ method, path }: Operation): string =>
  code(
    `${method} ${path
      .replace(providerPrefix, "P")
      .replace(managementPrefix, "M")
      .replaceAll(/:(\w+)/g, "{$1}")}`
  )

const line = (
  { anyKey, codes, idempotency, operation, signedIn, summary }: Row,
  sets: ReadonlyArray<ErrorSet>
): string => {
  const [, ...named] = sets
  const declared = named.filter((set) => set.codes.size > 0 && contains(codes, set.codes))
  const whole = declared.filter((set) => !declared.some((other) => other !== set && contains(other.codes, set.codes)))
  const said = new Set([...(sets[0]?.codes ?? []), ...whole.flatMap((set) => [...set.codes])])
  const own = [...codes].filter((one) => !said.has(one)).map(code)
  const needs =
    operation.permission === undefined ? (signedIn ? "a session" : anyKey ? "a key" : "") : code(operation.permission)
  return `| ${pathOf(operation)} | ${summary} | ${needs} | ${idempotency} | ${[...whole.map(({ name }) => name), ...own].join(", ")} |`
}

export const operationsTable = (): string => {
  const rows = rowsOf(OpenApi.fromApi(Api))
  const sets = errorSets(rows)
  return [
    `${code("P")} is ${code(providerPrefix.replace(":organizationId", "{organizationId}"))}, ${code("M")} is ${code(managementPrefix.replace(":organizationId", "{organizationId}"))}. Errors that many have in common:`,
    "",
    ...sets.map(({ codes, name }) => `- *${name}*: ${[...codes].map(code).join(", ")}`),
    "",
    "| Operation | | Needs | `Idempotency-Key` | Errors |",
    "| --- | --- | --- | --- | --- |",
    ...rows.map((row) => line(row, sets)),
    ""
  ].join("\n")
}
