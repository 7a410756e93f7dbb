import { createServer } from "node:http"
import { expect, expectTypeOf } from "@effect/vitest"
import { Effect } from "effect"
import { ApiError, makeFetchClient } from "../../src/client/Fetch.ts"
import { listening } from "../harness/Listening.ts"
import { onSharedService, TestService } from "../harness/TestService.ts"
import { it } from "../harness/Tests.ts"

// Its types here are a few in the generator's form; test/package compiles against all of them

type Operation<Parameters, Answer> = {
  readonly parameters: Parameters & { readonly path: { readonly organizationId: string }; readonly cookie?: never }
  readonly responses: { readonly 200: { readonly content: { readonly "application/json": Answer } } }
}
interface Product {
  readonly id: string
  readonly name?: string
}
interface Paths {
  readonly "/v2/organizations/{organizationId}/provider/products": {
    readonly get: Operation<{ query?: { limit?: number } }, { readonly data: ReadonlyArray<Product> }>
    readonly post: Operation<{ query?: never }, Product> & {
      readonly requestBody: { readonly content: { readonly "application/json": { readonly name: string } } }
    }
    readonly put?: never
  }
  readonly "/v2/organizations/{organizationId}/provider/products/{id}": {
    readonly get: Operation<{ path: { id: string } }, Product>
  }
  readonly "/health": { readonly get: Operation<object, string> }
}

const refusalOf = (call: () => Promise<unknown>) => Effect.promise(() => expect(call()).rejects.toThrow())

const failureOf = (call: Promise<unknown>): Effect.Effect<Error> =>
  Effect.flip(
    Effect.tryPromise({ try: () => call, catch: (error) => (error instanceof Error ? error : new Error()) })
  ).pipe(Effect.orDieWith(() => "It did not fail"))

onSharedService("the client by fetch", (it) => {
  it.effect("creates, reads and lists with typed answers, the same thing for the same idempotency key", function* () {
    const { baseUrl, organization } = yield* TestService
    const client = makeFetchClient<Paths>({
      baseUrl: `${baseUrl}/`,
      organizationId: organization.id,
      apiKey: organization.testKey
    })
    const create = () =>
      Effect.promise(() =>
        client.post("/provider/products", { body: { name: "Tea" }, idempotencyKey: `tea-${organization.id}` })
      )
    const product = yield* create()
    expectTypeOf(product).toEqualTypeOf<Product>()
    expect(yield* create()).toEqual(product)
    const read = yield* Effect.promise(() => client.get("/provider/products/{id}", { path: { id: product.id } }))
    expect(read.name).toBe("Tea")
    const { data } = yield* Effect.promise(() => client.get("/provider/products", { query: { limit: 1 } }))
    expect(data.length).toBe(1)
    expectTypeOf<Parameters<typeof client.get>[0]>().toEqualTypeOf<"/provider/products" | "/provider/products/{id}">()
    expectTypeOf<Parameters<typeof client.put>[0]>().toEqualTypeOf<never>()
    // @ts-expect-error: no path without its values
    yield* refusalOf(() => client.get("/provider/products/{id}"))
    // @ts-expect-error: no field that the operation does not take
    yield* refusalOf(() => client.post("/provider/products", { body: { title: "Tea" } }))
  })

  it.effect("fails with the API's code, and with nothing of the key", function* () {
    const { baseUrl, organization } = yield* TestService
    const apiKey = `${organization.testKey}x`
    const client = makeFetchClient<Paths>({ baseUrl, organizationId: organization.id, apiKey })
    const refused = yield* failureOf(client.get("/provider/products"))
    expect(refused).toBeInstanceOf(ApiError)
    expect(refused).toMatchObject({ status: 401, code: "api_key_invalid" })
    const lost = makeFetchClient<Paths>({ baseUrl: "http://127.0.0.1:9", organizationId: "o", apiKey })
    for (const error of [refused, yield* failureOf(lost.get("/provider/products"))]) {
      expect(JSON.stringify([error, error.message, error.stack, String(error.cause)])).not.toContain(apiKey)
    }
  })
})

it.each([
  ["a line break", "pk_test_a\n"],
  ["a space", "pk test"],
  ["nothing", ""],
  ["a letter that no header takes", "pk_test_é"]
])("a key with %s is refused at once, without being named", (_, apiKey) => {
  const make = () => makeFetchClient({ baseUrl: "http://127.0.0.1:9", organizationId: "o", apiKey })
  expect(make).toThrow(/^The API key is empty, or has a space or a line break in it$/)
})

it.scopedLive("neither a value of a path nor a redirect leads elsewhere, and a page is no answer", function* () {
  const asked: Array<string | undefined> = []
  const server = createServer((request, response) => {
    asked.push(request.url)
    if (request.method === "POST") response.writeHead(302, { location: "/elsewhere" }).end()
    else response.writeHead(200, { "content-type": "text/html" }).end("<h1>Welcome</h1>")
  })
  const port = yield* listening(server)
  const client = makeFetchClient<Paths>({ baseUrl: `http://127.0.0.1:${port}`, organizationId: "o/1", apiKey: "k" })
  for (const id of ["", ".", ".."]) yield* refusalOf(() => client.get("/provider/products/{id}", { path: { id } }))
  expect(asked).toEqual([])
  const page = yield* failureOf(client.get("/provider/products/{id}", { path: { id: "../a?b#c" } }))
  expect(page).toMatchObject({ status: 200, code: "", body: "<h1>Welcome</h1>" })
  const redirected = yield* failureOf(client.post("/provider/products", { body: { name: "Tea" } }))
  expect(redirected).toMatchObject({ status: 302, code: "" })
  expect(asked).toEqual([
    "/v2/organizations/o%2F1/provider/products/..%2Fa%3Fb%23c",
    "/v2/organizations/o%2F1/provider/products"
  ])
})
