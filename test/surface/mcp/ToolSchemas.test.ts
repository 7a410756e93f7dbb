import { OpenApi } from "@effect/platform"
import { expect } from "@effect/vitest"
import { Effect, Predicate } from "effect"
import { Api, operations } from "../../../src/surface/contract/Api.ts"
import { toolSets } from "../../../src/surface/mcp/ToolFilter.ts"
import { onSharedServiceWithWorker, TestService } from "../../harness/TestService.ts"
import { overHttp } from "./McpClient.ts"

const words = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** The tools of the provider's operations, by what they do to what: `list_products`, `cancel_subscription`. */
const providerTools = operations.flatMap(({ group, method, name, path }) => {
  const [, below] = /\{organizationId\}(\/provider\/.*)$/.exec(path.replaceAll(/:(\w+)/g, "{$1}")) ?? []
  if (below === undefined || group === "productImages") return []
  const [all, one] = [words(group), words(group).replace(/s$/, "")]
  const named: Readonly<Record<string, string>> = {
    list: `list_${all}`,
    payments: "search_payments",
    lineItems: `list_${one}_line_items`
  }
  const ofAccount = name === "get" ? "get_account" : `get_${words(name)}`
  const tool = group === "account" ? ofAccount : (named[name] ?? `${name}_${one}`)
  return [[tool, [method.toLowerCase(), below] as const] as const]
})

/** The operation of the HTTP API that a tool with arguments stands for. */
const operationOfTool: Readonly<Record<string, readonly [method: string, path: string]>> = {
  create_webhook_endpoint: ["post", "/integrations/endpoints"],
  update_webhook_endpoint: ["patch", "/integrations/endpoints/{id}"],
  set_webhook_endpoint_active: ["patch", "/integrations/endpoints/{id}"],
  delete_webhook_endpoint: ["delete", "/integrations/endpoints/{id}"],
  list_skipped_webhook_events: ["get", "/integrations/endpoints/{id}/skipped"],
  send_webhook_test_event: ["post", "/integrations/endpoints/{id}/test"],
  rotate_webhook_secret: ["post", "/integrations/endpoints/{id}/rotate-secret"],
  list_webhook_deliveries: ["get", "/integrations/endpoints/{id}/deliveries"],
  list_all_webhook_deliveries: ["get", "/integrations/deliveries"],
  get_webhook_statistics: ["get", "/integrations/statistics"],
  trigger_webhook_event: ["post", "/integrations/event-triggers"],
  get_webhook_delivery: ["get", "/integrations/deliveries/{id}"],
  retry_webhook_delivery: ["post", "/integrations/deliveries/{id}/retry"],
  recover_webhook_endpoint: ["post", "/integrations/endpoints/{id}/recover"],
  list_webhook_recoveries: ["get", "/integrations/endpoints/{id}/recoveries"],
  list_webhook_events: ["get", "/integrations/events"],
  get_webhook_event: ["get", "/integrations/events/{id}"],
  replay_webhook_events: ["post", "/integrations/endpoints/{id}/replay"],
  list_webhook_replays: ["get", "/integrations/endpoints/{id}/replays"],
  cancel_webhook_replay: ["post", "/integrations/endpoints/{id}/replays/{replayId}/cancel"],
  ...Object.fromEntries(providerTools)
}

/** What an argument is called in HTTP, where it is called something else. */
const nameInHttp: Readonly<Record<string, string>> = {
  endpointId: "id",
  deliveryId: "id",
  eventId: "id",
  idempotencyKey: "idempotency-key"
}

const document = JSON.parse(JSON.stringify(OpenApi.fromApi(Api)))

/** The schemas of an operation's fields: of its body, and of its parameters wherever they are. */
const fieldsOf = (method: string, path: string): Record<string, unknown> => {
  const operation = Object(document.paths[`/v2/organizations/{organizationId}${path}`])[method]
  const body = resolved(operation?.requestBody?.content?.["application/json"]?.schema)
  const parameters: ReadonlyArray<{ readonly name: string; readonly schema: unknown }> = operation.parameters
  return {
    ...Object.fromEntries(parameters.map(({ name, schema }) => [name, schema])),
    ...Object(Object(body)["properties"])
  }
}

const permissionOf = (method: string, path: string): string =>
  document.paths[`/v2/organizations/{organizationId}${path}`][method]["x-required-permission"]

const resolved = (schema: unknown): unknown => {
  const reference = Predicate.isRecord(schema) ? schema["$ref"] : undefined
  return Predicate.isString(reference)
    ? { ...document.components.schemas[reference.slice("#/components/schemas/".length)], ...Object(schema) }
    : schema
}

/** A query has true and false as words. */
const inJson = (schema: unknown): unknown => {
  const { enum: words } = Object(schema)
  return Array.isArray(words) && words.join() === "true,false" ? { type: "boolean" } : schema
}

const boundKeywords = new Set(
  "type enum format pattern minLength maxLength minimum maximum minItems maxItems maxProperties".split(" ")
)

/** What not every model's function calling knows. */
const unsupportedKeywords = "$ref allOf oneOf not if propertyNames patternProperties uniqueItems".split(" ")

const structuralKeywords = new Set(["items", "properties", "required", "additionalProperties", "anyOf"])

/** A schema without what it says to people. */
const boundsIn = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(boundsIn)
  const whole = resolved(schema)
  if (!Predicate.isRecord(whole)) return whole
  return Object.fromEntries(
    Object.entries(whole).flatMap(([keyword, value]): ReadonlyArray<readonly [string, unknown]> => {
      if (keyword === "properties") {
        return [
          [keyword, Object.fromEntries(Object.entries(Object(value)).map(([key, part]) => [key, boundsIn(part)]))]
        ]
      }
      // The document says a choice of one by its value; tools list texts alone
      if (keyword === "const") return typeof value === "string" ? [["enum", [value]]] : [["type", typeof value]]
      if (keyword === "enum" && typeof Object(value)[0] !== "string") return [["type", typeof Object(value)[0]]]
      if (structuralKeywords.has(keyword)) return [[keyword, boundsIn(value)]]
      // Only the document says how wide a whole number may be
      return boundKeywords.has(keyword) && value !== "int64" ? [[keyword, value]] : []
    })
  )
}

const listed = Effect.gen(function* () {
  const { baseUrl, organization } = yield* TestService
  const { client } = yield* overHttp(baseUrl, organization.testKey)
  return (yield* Effect.promise(() => client.listTools())).tools
})

onSharedServiceWithWorker("the list of tools", (it) => {
  it.scoped(
    "has sets of tools that leave a model room: each is under 8,000 tokens, of about four characters",
    function* () {
      const tools = yield* listed
      const sizes = Object.entries(toolSets).map(([set, names]) => {
        const chosen = names.map((name) => tools.find((tool) => tool.name === name))
        expect([set, chosen.indexOf(undefined), new Set(names).size]).toEqual([set, -1, names.length])
        const seen = chosen.map((tool) => ({
          name: tool?.name,
          description: tool?.description,
          inputSchema: tool?.inputSchema
        }))
        return [set, JSON.stringify(seen).length / 4] as const
      })
      expect(sizes.filter(([, tokens]) => tokens > 8000)).toEqual([])
      expect(sizes.map(([set]) => set)).toEqual(["sell", "support", "webhooks", "read"])
      // A set for looking changes nothing
      const changing = tools.filter(({ annotations }) => annotations?.readOnlyHint !== true).map(({ name }) => name)
      expect(toolSets["read"]?.filter((name) => changing.includes(name))).toEqual([])
    }
  )

  it.scoped("describes arguments by what every model's function calling takes", function* () {
    const tools = yield* listed
    const odd: Array<string> = []
    const walk = (node: unknown, at: string): void => {
      if (typeof node !== "object" || node === null) return
      const { enum: listed, pattern, type, ...rest } = node as Readonly<Record<string, unknown>>
      for (const keyword of unsupportedKeywords) {
        if (keyword in rest && !at.endsWith(".properties")) odd.push(`${at}: ${keyword}`)
      }
      if (Array.isArray(type)) odd.push(`${at}: several types`)
      if (Array.isArray(listed) && listed.some((value) => typeof value !== "string")) odd.push(`${at}: enum`)
      if (typeof pattern === "string" && /\(\?[=!<]/.test(pattern)) odd.push(`${at}: ${pattern}`)
      for (const [key, value] of Object.entries(node)) walk(value, `${at}.${key}`)
    }
    for (const { inputSchema, name } of tools) walk(inputSchema, name)
    expect(odd).toEqual([])
    // Where a value may be null, or a number or a word, there is no other way
    const alternatives = JSON.stringify(tools.map(({ inputSchema }) => inputSchema)).match(/"anyOf"/g) ?? []
    expect(alternatives.length).toBeLessThan(20)
  })

  it.scoped("says every bound of its arguments, as the HTTP API's document does", function* () {
    const tools = yield* listed
    const compared: Array<string> = []
    for (const { description, inputSchema, name } of tools) {
      const operation = operationOfTool[name]
      if (operation === undefined) continue
      const documented = fieldsOf(...operation)
      expect([name, description?.includes(permissionOf(...operation))]).toEqual([name, true])
      for (const [argument, schema] of Object.entries(inputSchema.properties ?? {})) {
        // How much of an answer the model wants to read is no question over HTTP
        if (argument === "full") continue
        const field = inJson(documented[nameInHttp[argument] ?? argument])
        expect([name, argument, boundsIn(schema)]).toEqual([name, argument, boundsIn(field)])
        if (JSON.stringify(boundsIn(schema)) !== "{}") compared.push(`${name}.${argument}`)
      }
    }
    const prices = tools.find(({ name }) => name === "list_prices")?.inputSchema.properties ?? {}
    expect(Object.entries(prices).filter(([, schema]) => typeof Object(schema).description !== "string")).toEqual([])
    const withoutArguments = ["list_event_types", "list_webhook_endpoints"]
    expect(Object.keys(operationOfTool).toSorted()).toEqual(
      tools
        .map(({ name }) => name)
        .filter((name) => !withoutArguments.includes(name))
        .toSorted()
    )
    console.log("N", compared.length)
    // Most arguments have bounds
    expect(compared.length).toBeGreaterThan(200)
  })
})
