import { brotliDecompressSync, gunzipSync } from "node:zlib"
import { expect } from "@effect/vitest"
import { Ajv2020 } from "ajv/dist/2020.js"
import addFormats from "ajv-formats"
import { Effect, Option, Predicate, Schema, SchemaAST } from "effect"
import { request as undiciRequest } from "undici"
import { EventType } from "../../../src/events/Catalog.ts"
import { refusedReasons } from "../../../src/events/DeliveryHeaders.ts"
import { Envelope, encodeEnvelope, makeEnvelope, makeTestEnvelope } from "../../../src/events/Envelope.ts"
import { documentedErrors } from "../../../src/platform/errors/Errors.ts"
import { operations } from "../../../src/surface/contract/Api.ts"
import { onSharedService, sendRequest, TestService } from "../../harness/TestService.ts"
import { expectFailure } from "../http/Refusals.ts"

/** As much of OpenAPI 3.1 as these tests read; the linters check the whole form. */
const Reference = Schema.Struct({ $ref: Schema.String })
const Json = Schema.Record({ key: Schema.String, value: Schema.Unknown })
const recordOf = <A, I>(value: Schema.Schema<A, I>) => Schema.Record({ key: Schema.String, value })
const Content = recordOf(Schema.Struct({ schema: Json }))
const Described = {
  operationId: Schema.NonEmptyString,
  summary: Schema.NonEmptyString,
  description: Schema.NonEmptyString,
  tags: Schema.NonEmptyArray(Schema.String),
  parameters: Schema.Array(
    Schema.Struct({ name: Schema.String, in: Schema.String, required: Schema.Boolean, schema: Json })
  ),
  security: Schema.Array(recordOf(Schema.Array(Schema.String)))
}
const DocumentedOperation = Schema.Struct({
  ...Described,
  requestBody: Schema.optional(Schema.Struct({ required: Schema.Literal(true), content: Content })),
  responses: recordOf(
    Schema.Struct({ description: Schema.NonEmptyString, headers: Json, content: Schema.optional(Content) })
  ),
  "x-required-permission": Schema.optional(Schema.String)
})
type DocumentedOperation = typeof DocumentedOperation.Type
const Webhook = Schema.Struct({
  post: Schema.Struct({
    ...Described,
    requestBody: Schema.Struct({
      content: Schema.Struct({ "application/json": Schema.Struct({ schema: Reference, example: Envelope }) })
    }),
    responses: recordOf(
      Schema.Struct({
        description: Schema.NonEmptyString,
        headers: Schema.optional(recordOf(Schema.Struct({ description: Schema.NonEmptyString, schema: Json })))
      })
    )
  })
})
const Document = Schema.Struct({
  openapi: Schema.String.pipe(Schema.pattern(/^3\.1\.\d+$/)),
  info: Schema.Struct({
    title: Schema.Literal("connected-payments"),
    version: Schema.NonEmptyString,
    description: Schema.NonEmptyString,
    license: Schema.Struct({ name: Schema.Literal("MIT"), identifier: Schema.Literal("MIT") }),
    contact: Schema.Struct({ name: Schema.NonEmptyString })
  }),
  servers: Schema.Tuple(Schema.Struct({ url: Schema.Literal("/"), description: Schema.NonEmptyString })),
  paths: recordOf(recordOf(DocumentedOperation)),
  webhooks: Schema.Record({ key: EventType, value: Webhook }),
  components: Schema.Struct({ schemas: recordOf(Json), securitySchemes: recordOf(Json) }),
  tags: Schema.Array(Schema.Struct({ name: Schema.String, description: Schema.optional(Schema.String) }))
})

const document = Effect.gen(function* () {
  const answer = yield* sendRequest("GET", "/openapi.json")
  expect(answer.status).toBe(200)
  expect(answer.headers.get("content-type")).toMatch(/^application\/json/)
  return { text: answer.text, json: yield* Schema.decodeUnknown(Document, { errors: "all" })(answer.json) }
})

const documentedPath = (path: string) => path.replaceAll(/:(\w+)/g, "{$1}")

/** Each operation of the contract beside what the document says of it. */
const documented = Effect.map(document, ({ json }) =>
  operations.map((operation) => ({
    operation,
    name: `${operation.method} ${operation.path}`,
    said: Object.entries(json.paths[documentedPath(operation.path)] ?? {}).find(
      ([method]) => method === operation.method.toLowerCase()
    )?.[1]
  }))
)

/** What a status's body may be: names of component schemas. */
const bodiesOf = (said: DocumentedOperation | undefined, status: number): ReadonlyArray<string> => {
  const schema = said?.responses[String(status)]?.content?.["application/json"]?.schema ?? {}
  const alternatives = Array.isArray(schema["anyOf"]) ? schema["anyOf"] : [schema]
  return alternatives.filter(Schema.is(Reference)).map(({ $ref }) => $ref.replace("#/components/schemas/", ""))
}

const referencesIn = (value: unknown): ReadonlyArray<string> =>
  typeof value !== "object" || value === null
    ? []
    : Object.entries(value).flatMap(([key, part]) =>
        key === "$ref" && typeof part === "string" ? [part] : referencesIn(part)
      )

const namesOf = (schema: Option.Option<Schema.Schema.All>): ReadonlyArray<string> =>
  Option.match(schema, {
    onNone: () => [],
    onSome: ({ ast }) => SchemaAST.getPropertySignatures(SchemaAST.encodedAST(ast)).map(({ name }) => String(name))
  })

const data = { payment_id: "pi_1", amount_received: 1500, currency: "brl" }
const organizationId = "0199c0de-0000-7000-8000-000000000001"
const paymentSucceeded = makeEnvelope({
  provider: "stripe",
  environment: "production",
  organizationId,
  providerEventId: "evt_1",
  created: 1_760_000_000,
  type: "payment.succeeded",
  data
})
const testPayment = makeTestEnvelope({
  organizationId,
  testId: "0199c0de-0000-7000-8000-000000000002",
  createdAt: new Date(0),
  type: "payment.succeeded",
  data
})

const everywhere = ["ValidationFailed", "MethodNotAllowed", "PayloadTooLarge", "UnsupportedMediaType", "InternalError"]
const behindKeys = ["AuthenticationRequired", "ApiKeyInvalid", "OrganizationAccessDenied", "ServiceUnavailable"]
const atTheProvider = [
  "ProviderAccountNotConnected",
  "ProviderRequestRefused",
  "ProviderPaymentRefused",
  "ProviderObjectNotFound",
  "ProviderUnavailable",
  "ProviderPermissionDenied",
  "ProviderRateLimited",
  "ProviderTimeout",
  "IdempotencyKeyReused",
  "IdempotencyRequestInProgress"
]
const ofNewEndpoints = [
  "EndpointLimitReached",
  "DestinationRejected",
  "DestinationUnresolvable",
  "IntegrationFilterUnknown"
]

const errorsOf = ({ method, path, permission }: (typeof operations)[number]): ReadonlyArray<string> => [
  ...everywhere,
  ...(permission === undefined ? [] : behindKeys),
  ...(permission?.startsWith("webhook-endpoints:") === true ? ["EndpointManagementForbidden"] : []),
  ...(permission?.startsWith("webhook-endpoints:") === false ? ["PermissionDenied"] : []),
  ...(path.endsWith("/product-images")
    ? ["ProviderAccountNotConnected", "ServiceUnavailable"]
    : /^\/v2\/.*\/provider\//.test(path)
      ? atTheProvider
      : []),
  ...(path === "/product-images/:file" ? ["ResourceNotFound", "ServiceUnavailable"] : []),
  ...(path.endsWith("/integrations/endpoints") && method === "POST" ? ofNewEndpoints : []),
  ...(/\/integrations\/.*:id/.test(path) ? ["ResourceNotFound"] : []),
  ...(path.startsWith("/webhooks/") ? ["SignatureInvalid", "ServiceUnavailable"] : []),
  ...(path === "/health/ready" ? ["ServiceUnavailable"] : [])
]

onSharedService("the documents", (it) => {
  it.effect("are OpenAPI 3.1 whose references all lead somewhere, with operation ids of their own", function* () {
    const { json } = yield* document
    const known = Object.keys(json.components.schemas).map((name) => `#/components/schemas/${name}`)
    expect([...new Set(referencesIn(json))].filter((reference) => !known.includes(reference))).toEqual([])
    const ids = [
      ...Object.values(json.paths).flatMap((path) => Object.values(path).map(({ operationId }) => operationId)),
      ...Object.values(json.webhooks).map(({ post }) => post.operationId)
    ]
    expect(new Set(ids).size).toBe(ids.length)
    expect(json.components.securitySchemes).toMatchObject({
      apiKey: { type: "apiKey", in: "header", name: "x-api-key" }
    })
  })

  it.effect("list every operation and no other", function* () {
    const { json } = yield* document
    const said = Object.entries(json.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`)
    )
    expect(said.toSorted()).toEqual(
      operations.map(({ method, path }) => `${method} ${documentedPath(path)}`).toSorted()
    )
  })

  it.effect("say each operation's permission, and which need a credential", function* () {
    for (const { name, operation, said } of yield* documented) {
      expect(said?.["x-required-permission"], name).toBe(operation.permission)
      if (operation.permission === undefined) {
        expect([[], [{ session: [] }], [{ apiKey: [] }]], name).toContainEqual(said?.security)
      } else {
        expect(said?.security, name).toContainEqual({ apiKey: [] })
        expect(said?.description, name).toContain(`\`${operation.permission}\``)
      }
    }
  })

  const namesOfPages = /\/event-stream$|^\/identity\/(?:sign-in|invitation|account\/.*)$/

  it.effect("say each operation's parameters and body", function* () {
    for (const { name, operation, said } of yield* documented) {
      const { headersSchema, pathSchema, payloadSchema, urlParamsSchema } = operation.endpoint
      const parameters = (place: string) => said?.parameters.filter((p) => p.in === place).map((p) => p.name)
      expect(parameters("path"), name).toEqual(namesOf(pathSchema))
      expect(
        said?.parameters.filter((p) => p.in === "path").every((p) => p.required),
        name
      ).toBe(true)
      expect(parameters("query"), name).toEqual(namesOf(urlParamsSchema))
      // A page and a stream of events are not asked for again
      const isTagged = /^GET \/(?:v2|identity)\//.test(name) && !namesOfPages.test(operation.path)
      expect(parameters("header"), name).toEqual([...namesOf(headersSchema), ...(isTagged ? ["If-None-Match"] : [])])
      expect(said?.responses["304"] !== undefined, name).toBe(isTagged)
      const types = Object.keys(said?.requestBody?.content ?? {})
      if (operation.path.endsWith("/product-images")) {
        expect(types, name).toEqual(["image/jpeg", "image/png", "image/webp", "multipart/form-data"])
      } else if (operation.group === "payPages" && operation.method === "POST") {
        expect(types, name).toEqual(["application/x-www-form-urlencoded"])
      } else {
        expect(types, name).toEqual(Option.isSome(payloadSchema) ? ["application/json"] : [])
      }
      const limit = said?.parameters.find((parameter) => parameter.name === "limit")
      if (limit !== undefined) {
        expect(limit.schema).toMatchObject({ type: "integer", minimum: 1, maximum: 100 })
      }
    }
  })

  it.effect("say every status of every operation, with the error's code and body", function* () {
    for (const { name, operation, said } of yield* documented) {
      expect(
        Object.keys(said?.responses ?? {}).some((status) => status.startsWith("2")),
        name
      ).toBe(true)
      const expected = errorsOf(operation)
      for (const errorClass of documentedErrors) {
        const { code, status } = errorClass.documentation
        if (expected.includes(errorClass.tag)) {
          expect(bodiesOf(said, status), `${name} ${errorClass.tag}`).toContain(errorClass.tag)
          expect(said?.responses[status]?.description, name).toContain(`\`${code}\``)
        }
      }
      for (const [status, response] of Object.entries(said?.responses ?? {})) {
        expect(Object.keys(response.headers), `${name} ${status}`).toContain("request-id")
      }
    }
  })

  it.effect("say the four keys of an error's body, all required", function* () {
    const { json } = yield* document
    for (const { documentation, tag } of documentedErrors) {
      const schema = json.components.schemas[tag]
      if (schema !== undefined) {
        expect(schema["required"], tag).toEqual(["error", "code", "fields", "requestId"])
        expect(Object.keys(Object(schema["properties"])).toSorted(), tag).toEqual([
          "code",
          "error",
          "fields",
          "requestId"
        ])
        expect(JSON.stringify(schema), tag).toContain(documentation.code)
      }
    }
  })

  it.effect("say each of the 19 events that an endpoint may receive, with headers and what to answer", function* () {
    const { json } = yield* document
    expect(Object.keys(json.webhooks).toSorted()).toEqual(EventType.literals.toSorted())
    for (const { post } of Object.values(json.webhooks)) {
      expect(post.parameters.map((parameter) => [parameter.name, parameter.in, parameter.required])).toEqual([
        ["Service-Signature", "header", true],
        ["Service-Delivery-ID", "header", true],
        ["webhook-id", "header", true],
        ["webhook-timestamp", "header", true],
        ["webhook-signature", "header", true]
      ])
      expect(Object.keys(post.responses)).toEqual(
        expect.arrayContaining(["2XX", "408", "429", "503", "4XX", "default"])
      )
      expect(post.responses["4XX"]?.headers?.["Service-Refused"]?.schema["enum"]).toEqual([...refusedReasons])
    }
    expect(json.tags.map(({ name }) => name)).toContain("Webhooks")
  })

  it.effect("say of each event a body that its envelope fits, and no other type's", function* () {
    const { json } = yield* document
    const ajv = addFormats.default(new Ajv2020({ strict: false, allErrors: true }))
    ajv.addSchema({ $id: "openapi", components: { schemas: json.components.schemas } })
    const bodyOf = (type: EventType) =>
      ajv.compile({ $ref: `openapi${json.webhooks[type]?.post.requestBody.content["application/json"].schema.$ref}` })
    const fits = bodyOf("payment.succeeded")
    const envelope = JSON.parse(encodeEnvelope(paymentSucceeded))
    expect(fits(envelope), JSON.stringify(fits.errors)).toBe(true)
    expect(fits(JSON.parse(encodeEnvelope(testPayment))), JSON.stringify(fits.errors)).toBe(true)
    for (const type of EventType.literals) {
      const { example } = json.webhooks[type]?.post.requestBody.content["application/json"] ?? {}
      expect(bodyOf(type)(example), type).toBe(true)
    }
    for (const type of EventType.literals.filter((type) => type !== "payment.succeeded")) {
      expect(bodyOf(type)(envelope), type).toBe(false)
    }
  })

  it.effect("are compressed once for whoever takes that, and 304 for whoever has them", function* () {
    const { baseUrl } = yield* TestService
    const get = (path: string, headers: Record<string, string>) =>
      Effect.promise(async () => {
        const { body, headers: answered, statusCode } = await undiciRequest(`${baseUrl}${path}`, { headers })
        return { status: statusCode, headers: answered, bytes: Buffer.from(await body.arrayBuffer()) }
      })
    for (const path of [
      "/docs",
      "/docs/api",
      "/docs/reference",
      "/docs/reference/checkout-sessions",
      "/openapi.json",
      "/docs/errors",
      "/schemas/events.json"
    ]) {
      const plain = yield* get(path, {})
      expect([path, plain.status, plain.headers["content-encoding"]]).toEqual([path, 200, undefined])
      const tags = new Set([plain.headers.etag])
      for (const [accepted, coding, decode] of [
        ["gzip, deflate, br;q=0.5", "br", brotliDecompressSync],
        ["GZIP ;q=0.1, br;q=0", "gzip", gunzipSync],
        ["gzip;q=0.0, identity, *;q=1", undefined, (bytes: Buffer) => bytes]
      ] as const) {
        const answer = yield* get(path, { "accept-encoding": accepted })
        expect([path, answer.headers["content-encoding"], answer.headers.vary]).toEqual([
          path,
          coding,
          "accept-encoding"
        ])
        expect(decode(answer.bytes).equals(plain.bytes), path).toBe(true)
        if (coding !== undefined) {
          expect(answer.bytes.length, path).toBeLessThan(plain.bytes.length / 2)
        }
        tags.add(answer.headers.etag)
        const again = yield* get(path, {
          "accept-encoding": accepted,
          "if-none-match": String(answer.headers.etag)
        })
        expect([path, again.status, again.bytes.length]).toEqual([path, 304, 0])
      }
      expect(tags.size, path).toBe(3)
    }
  })

  it.effect("are closed for what the service takes, and open for what it sends", function* () {
    const { json } = yield* document
    const component = (reference: string) => json.components.schemas[reference.replace("#/components/schemas/", "")]
    /** All objects with fields in a schema, those that it refers to included. */
    const objectsOf = (value: unknown, seen = new Set<string>()): ReadonlyArray<Readonly<Record<string, unknown>>> => {
      if (Array.isArray(value)) return value.flatMap((part) => objectsOf(part, seen))
      if (!Predicate.isRecord(value)) return []
      const { $ref } = value
      if (Predicate.isString($ref)) {
        if (seen.has($ref)) return []
        seen.add($ref)
        return objectsOf(component($ref), seen)
      }
      const fields = Predicate.isRecord(value["properties"]) ? Object.keys(value["properties"]) : []
      return [...(fields.length > 0 ? [value] : []), ...Object.values(value).flatMap((part) => objectsOf(part, seen))]
    }
    const all = Object.values(json.paths).flatMap((path) => Object.values(path))
    const sent = objectsOf([all.map(({ responses }) => responses), json.webhooks])
    expect(sent.length).toBeGreaterThan(100)
    expect(sent.filter((object) => object["additionalProperties"] === false)).toEqual([])
    const taken = all
      .filter(({ tags }) => !tags.includes("Inbound"))
      .flatMap(({ requestBody }) => objectsOf(requestBody))
    expect(taken.length).toBeGreaterThan(20)
    expect(taken.filter((object) => object["additionalProperties"] !== false)).toEqual([])
  })

  it.effect("can be read by other languages' tools: no ids, no library's names", function* () {
    const { json, text } = yield* document
    expect(text).not.toContain('"$id"')
    expect(text).not.toContain('"patternProperties"')
    expect(text).not.toMatch(/"title":"(?:unknown|int|finite|maxItems|nonNegative)/)
    expect(JSON.stringify(json.components.schemas)).not.toMatch(/"description":"an? (?:string|array|finite)/)
  })

  it.effect("say nothing of the platform's own errors; signing secrets at creation and rotation alone", function* () {
    const { json, text } = yield* document
    expect(text).not.toMatch(/HttpApiDecodeError|"Issue"|PropertyKey|_tag/)
    const withSecret = Object.entries(json.components.schemas).filter(([, schema]) =>
      Object.keys(Object(schema["properties"])).some((name) => /secret$/i.test(name))
    )
    expect(withSecret.map(([name]) => name)).toEqual(["CreatedEndpoint", "RotatedEndpoint"])
  })
})

onSharedService("the schemas of events", (it) => {
  const paths = ["/schemas/events.json", ...EventType.literals.map((type) => `/schemas/events/${type}.json`)]

  it.effect("are served to everybody at their ids, and hold together for a validator", function* () {
    const { request } = yield* TestService
    const ajv = addFormats.default(new Ajv2020({ allErrors: true }))
    for (const path of paths) {
      const { headers, json, status } = yield* request("GET", path)
      expect([path, status, headers.get("content-type")]).toEqual([path, 200, "application/schema+json"])
      expect(json).toMatchObject({ $id: path, $schema: "https://json-schema.org/draft/2020-12/schema" })
      expect(headers.get("request-id")).toMatch(/^req_/)
      ajv.addSchema(json)
    }
    for (const path of [paths[0] ?? "", "/schemas/events/payment.succeeded.json"]) {
      const validate = ajv.getSchema(path)
      expect(validate?.(JSON.parse(encodeEnvelope(paymentSucceeded))), JSON.stringify(validate?.errors)).toBe(true)
      expect(validate?.({ ...paymentSucceeded, version: 2 })).toBe(false)
    }
  })

  it.effect("may be kept: a client that has the present one is told so without a body", function* () {
    const { request } = yield* TestService
    const tags = new Set<string>()
    for (const path of paths) {
      const first = yield* request("GET", path)
      const tag = first.headers.get("etag") ?? ""
      tags.add(tag)
      expect(first.headers.get("cache-control")).toMatch(/^public, max-age=\d+/)
      const again = yield* request("GET", path, { headers: { "if-none-match": `"other", W/${tag}` } })
      expect([again.status, again.text, again.headers.get("etag")]).toEqual([304, "", tag])
      const other = yield* request("GET", path, { headers: { "if-none-match": '"other"' } })
      expect([other.status, other.text]).toEqual([200, first.text])
      const head = yield* request("HEAD", path)
      expect([head.status, head.text, head.headers.get("etag")]).toEqual([200, "", tag])
    }
    expect(tags.size).toBe(paths.length)
  })

  it.effect("of unknown types are 404, and other methods 405", function* () {
    for (const path of [
      "/schemas",
      "/schemas/events",
      "/schemas/events/payment.created.json",
      "/schemas/events/payment.succeeded",
      "/schemas/events/PAYMENT.SUCCEEDED.json",
      "/schemas/events/constructor.json",
      "/schemas/events/%E0%A4.json",
      "/schemas/events/..%2fpayment.succeeded.json"
    ]) {
      expectFailure(yield* sendRequest("GET", path), { status: 404, code: "resource_not_found", fields: [] }, path)
    }
    for (const path of paths) {
      const answer = yield* sendRequest("POST", path, { body: {} })
      expectFailure(answer, { status: 405, code: "method_not_allowed", fields: [] }, path)
      expect(answer.headers.get("allow")).toBe("GET, HEAD")
    }
  })
})

onSharedService("health", (it) => {
  it.effect("says that the process lives and that it can serve, to everybody", function* () {
    for (const status of ["live", "ready"]) {
      const answer = yield* sendRequest("GET", `/health/${status}`)
      expect([answer.status, answer.json]).toEqual([200, { status }])
    }
  })
})
