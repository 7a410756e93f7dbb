import { createServer, type RequestListener, request as sendRequest } from "node:http"
import { describe, expect, vi } from "@effect/vitest"
import { Effect } from "effect"
import express from "express"
import fastify, { type FastifyInstance } from "fastify"
import Koa from "koa"
import {
  expressWebhookHandler,
  fastifyWebhook,
  fetchWebhookHandler,
  koaWebhookHandler,
  type LambdaWebhookEvent,
  lambdaWebhookHandler,
  nodeWebhookHandler,
  RetryWebhook,
  receiveWebhook,
  verifyFetchWebhook,
  verifyNodeWebhook,
  type WebhookDelivery,
  type WebhookEvent,
  type WebhookHandlerOptions
} from "../../src/webhooks/index.ts"
import { eventuallyTrue } from "../harness/Eventually.ts"
import { listening } from "../harness/Listening.ts"
import { it } from "../harness/Tests.ts"
import { body, envelope, organizationId, previousSecret, secret, signNow } from "./Deliveries.ts"

// Real servers and real requests: each adapter answers the service alike

const serve = (listener: RequestListener) =>
  Effect.map(listening(createServer(listener)), (port) => `http://127.0.0.1:${port}/webhooks`)

const logOfErrors = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => vi.spyOn(console, "error").mockImplementation(() => {})),
    (spy) => Effect.sync(() => spy.mockRestore())
  ),
  (spy) => () => spy.mock.calls.map(([, error]) => error)
)

interface Seen {
  readonly events: Array<{ readonly event: WebhookEvent; readonly delivery: WebhookDelivery }>
  readonly refused: Array<string>
  readonly errors: Array<unknown>
}

type Send = (change?: {
  readonly method?: string
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
}) => Effect.Effect<{ readonly status: number; readonly headers: Headers; readonly text: string }>

const send =
  (call: (url: string, init: RequestInit) => Promise<Response>, url: string): Send =>
  ({ method = "POST", body: text = body, headers = { "service-signature": signNow(text) } } = {}) =>
    Effect.promise(async () => {
      const response = await call(url, {
        method,
        headers: { "content-type": "application/json", "service-delivery-id": "0199c0de-dd", ...headers },
        ...(method === "GET" ? {} : { body: text })
      })
      return { status: response.status, headers: response.headers, text: await response.text() }
    })

const watched = (change: Partial<WebhookHandlerOptions> = {}): { seen: Seen; options: WebhookHandlerOptions } => {
  const seen: Seen = { events: [], refused: [], errors: [] }
  return {
    seen,
    options: {
      secret,
      organizationId,
      livemode: false,
      onEvent: async (event, delivery) => void seen.events.push({ event, delivery }),
      onRefused: ({ reason }) => void seen.refused.push(reason),
      onError: (error) => void seen.errors.push(error),
      ...change
    }
  }
}

/** The event that API Gateway makes of a request, in both formats, with what the kit does not read left out. */
const lambdaEvents = {
  "1.0": (method, headers, text) => ({
    resource: "/webhooks",
    path: "/webhooks",
    httpMethod: method,
    headers: Object.fromEntries(headers),
    multiValueHeaders: Object.fromEntries(headers.map(([name, value]) => [name, [value]])),
    queryStringParameters: null,
    requestContext: {
      resourcePath: "/webhooks",
      httpMethod: method,
      stage: "prod",
      identity: { sourceIp: "192.0.2.1" }
    },
    body: text,
    isBase64Encoded: false
  }),
  "2.0": (method, headers, text) => ({
    version: "2.0",
    routeKey: "$default",
    rawPath: "/webhooks",
    headers: Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value])),
    requestContext: { http: { method, path: "/webhooks", protocol: "HTTP/1.1" }, stage: "$default" },
    ...(text === null ? {} : { body: Buffer.from(text).toString("base64") }),
    isBase64Encoded: true
  })
} satisfies Record<
  string,
  (method: string, headers: ReadonlyArray<readonly [string, string]>, text: string | null) => LambdaWebhookEvent
>

const lambda = (format: keyof typeof lambdaEvents) => (options: WebhookHandlerOptions) => {
  const handle = lambdaWebhookHandler(options)
  const call = async (_url: string, { body, headers, method = "" }: RequestInit) => {
    // As sent: format 1.0 keeps the case of names
    const sent = [...new Headers(headers)].map(([name, value]) => [name.replace(/^s/, "S"), value] as const)
    const answer = await handle(lambdaEvents[format](method, sent, typeof body === "string" ? body : null))
    return new Response(answer.body === "" ? null : answer.body, {
      status: answer.statusCode,
      headers: { ...answer.headers }
    })
  }
  return Effect.succeed(send(call, ""))
}

const serveFastify = (options: WebhookHandlerOptions, prepare: (app: FastifyInstance) => void = () => {}) => {
  const app = fastify()
  prepare(app)
  app.register(fastifyWebhook(options), { prefix: "/webhooks" })
  app.post("/orders", (request) => request.body)
  return Effect.promise(async () => app.ready()).pipe(Effect.zipRight(serve(app.routing)))
}

/** Koa, with a middleware before the handler. */
const serveKoa = (options: WebhookHandlerOptions, before: Koa.Middleware = (_, next) => next()) => {
  const app = new Koa()
  const receive = koaWebhookHandler(options)
  app.use(before).use((context, next) => (context.path === "/webhooks" ? receive(context) : next()))
  return serve(app.callback())
}

/** Reads Koa's body as body parsers do, which leave `body` and, some of them, the text. */
const koaParser =
  (keep: (text: string) => object): Koa.Middleware =>
  async ({ req, request }, next) => {
    Object.assign(request, keep(Buffer.concat(await req.toArray()).toString()))
    await next()
  }

const adapters = {
  "Node's http": (options: WebhookHandlerOptions) =>
    Effect.map(serve(nodeWebhookHandler(options)), (url) => send(fetch, url)),
  "Express, before its JSON parser": (options: WebhookHandlerOptions) => {
    const app = express()
    app.post("/webhooks", expressWebhookHandler(options))
    app.all("/webhooks", expressWebhookHandler(options))
    app.use(express.json())
    return Effect.map(serve(app), (url) => send(fetch, url))
  },
  "Express, behind its raw parser": (options: WebhookHandlerOptions) => {
    const app = express()
    app.use(express.raw({ type: "application/json", limit: "2mb" }))
    app.use(expressWebhookHandler(options))
    return Effect.map(serve(app), (url) => send(fetch, url))
  },
  "a platform that parses the body and keeps its bytes": (options: WebhookHandlerOptions) => {
    const app = express()
    app.use(express.raw({ type: "application/json", limit: "2mb" }), (request, _, next) => {
      Object.assign(request, { rawBody: request.body, body: { parsed: "by the platform" } })
      next()
    })
    app.use(expressWebhookHandler(options))
    return Effect.map(serve(app), (url) => send(fetch, url))
  },
  "Express, behind its text parser": (options: WebhookHandlerOptions) => {
    const app = express()
    app.use(express.text({ type: "application/json", limit: "2mb" }))
    app.use(expressWebhookHandler(options))
    return Effect.map(serve(app), (url) => send(fetch, url))
  },
  Fastify: (options: WebhookHandlerOptions) => Effect.map(serveFastify(options), (url) => send(fetch, url)),
  Koa: (options: WebhookHandlerOptions) => Effect.map(serveKoa(options), (url) => send(fetch, url)),
  "Koa, behind a parser that keeps the text": (options: WebhookHandlerOptions) =>
    Effect.map(
      serveKoa(
        options,
        koaParser((rawBody) => ({ rawBody, body: { parsed: "by the parser" } }))
      ),
      (url) => send(fetch, url)
    ),
  "Lambda by API Gateway's format 1.0": lambda("1.0"),
  "Lambda by API Gateway's format 2.0, in base64": lambda("2.0"),
  "Fetch's Request": (options: WebhookHandlerOptions) => {
    const handle = fetchWebhookHandler(options)
    return Effect.succeed(send((url, init) => handle(new Request(url, init)), "http://consumer.example/webhooks"))
  }
}

describe.each(Object.entries(adapters))("a receiving endpoint on %s", (_, start) => {
  it.scopedLive("answers 204 once the effect of a genuine event is stored", function* () {
    let stored = false
    const { options, seen } = watched()
    const answer = yield* Effect.flatMap(
      start({
        ...options,
        onEvent: async (event, delivery) => {
          await new Promise((resolve) => setTimeout(resolve, 20))
          stored = true
          seen.events.push({ event, delivery })
        }
      }),
      (send) => send()
    )
    expect([answer.status, answer.text, stored]).toEqual([204, "", true])
    expect(seen.events).toEqual([{ event: envelope, delivery: { id: "0199c0de-dd" } }])
  })

  it.scopedLive("answers 400 with the reason to what is not genuine or not for it, and runs nothing", function* () {
    const { options, seen } = watched()
    const send = yield* start(options)
    const foreign = JSON.stringify({ ...envelope, organization_id: "0199c0de-0000-7000-8000-000000000002" })
    const live = JSON.stringify({ ...envelope, livemode: true })
    const next = JSON.stringify({ ...envelope, version: 2 })
    const cases = [
      ["missing_header", "signature", { headers: {} }],
      ["malformed_header", "signature", { headers: { "service-signature": "t=1" } }],
      ["signature_mismatch", "signature", { body: `${body} `, headers: { "service-signature": signNow(body) } }],
      ["signature_mismatch", "signature", { body: "", headers: { "service-signature": signNow(body) } }],
      ["signature_mismatch", "signature", { headers: { "service-signature": signNow(body, "whsec_other") } }],
      ["timestamp_out_of_tolerance", "time", { headers: { "service-signature": signNow(body, secret, -400) } }],
      ["timestamp_out_of_tolerance", "time", { headers: { "service-signature": signNow(body, secret, 400) } }],
      ["malformed_body", null, { body: "[]" }],
      ["unsupported_version", "version", { body: next }],
      ["wrong_organization", "organization", { body: foreign }],
      ["wrong_environment", "environment", { body: live }]
    ] as const
    for (const [reason, code, request] of cases) {
      const answer = yield* send(request)
      expect([answer.status, answer.text]).toEqual([400, JSON.stringify({ error: reason })])
      expect([reason, answer.headers.get("service-refused")]).toEqual([reason, code])
    }
    expect(seen.refused).toEqual(cases.map(([reason]) => reason))
    expect([seen.events, seen.errors]).toEqual([[], []])
  })

  it.scopedLive("asks for a retry where the effect fails, and reports that failure", function* () {
    const failure = new Error("The database is away")
    const { options, seen } = watched({
      onEvent: () => {
        throw failure
      }
    })
    const answer = yield* Effect.flatMap(start(options), (send) => send())
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, null])
    expect(answer.text).not.toContain("database")
    expect(seen.errors).toEqual([failure])
  })

  it.scopedLive("asks for a retry after a while where the consumer says so, which is no failure", function* () {
    const { options, seen } = watched({
      onEvent: () => Promise.reject(new RetryWebhook("No such order yet", { afterSeconds: 59.5 }))
    })
    const answer = yield* Effect.flatMap(start(options), (send) => send())
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "60"])
    expect(seen.errors).toEqual([])
  })

  it.scopedLive("reads a body up to its bound, and answers 413 beyond it", function* () {
    const { options, seen } = watched({ maxBodyBytes: body.length })
    const send = yield* start(options)
    expect((yield* send()).status).toBe(204)
    for (const text of [`${body} `, "x".repeat(300_000)]) {
      const answer = yield* send({ body: text })
      expect([answer.status, answer.text]).toEqual([413, '{"error":"body_too_large"}'])
    }
    expect(seen.refused).toEqual(["body_too_large", "body_too_large"])
    expect(seen.events.length).toBe(1)
  })

  it.scopedLive("takes POST alone, and either secret of a rotation", function* () {
    const { options, seen } = watched({ secret: [secret, previousSecret] })
    const send = yield* start(options)
    for (const method of ["GET", "PUT"]) {
      const answer = yield* send({ method })
      expect([answer.status, answer.headers.get("allow")]).toEqual([405, "POST"])
    }
    expect((yield* send({ headers: { "service-signature": signNow(body, previousSecret) } })).status).toBe(204)
    expect(seen.events.length).toBe(1)
  })
})

describe("a body that a parser has read", () => {
  it.scopedLive.each([
    [
      "Express",
      (options: WebhookHandlerOptions) =>
        serve(express().use(express.json()).post("/webhooks", expressWebhookHandler(options)))
    ],
    [
      "Fastify",
      (options: WebhookHandlerOptions) =>
        serveFastify(options, (app) => {
          app.addHook("preParsing", async (_request, _reply, payload) => {
            await payload.toArray()
            return payload
          })
        })
    ],
    [
      "Koa",
      (options: WebhookHandlerOptions) =>
        serveKoa(
          options,
          koaParser((text) => ({ body: JSON.parse(text) }))
        )
    ]
  ] as const)(
    "is a failure on %s that says what to change, and the service is asked to come again",
    function* ([_, start]) {
      const { options, seen } = watched()
      expect((yield* Effect.flatMap(start(options), (url) => send(fetch, url)())).status).toBe(500)
      expect(seen.errors).toEqual([expect.any(TypeError)])
      expect(String(seen.errors[0])).toMatch(/express\.json\(\).*before that parser.*express\.raw/)
      expect([seen.events, seen.refused]).toEqual([[], []])
    }
  )

  it("is one on Lambda too", async () => {
    const { options, seen } = watched()
    const event = lambdaEvents["1.0"]("POST", [["service-signature", signNow(body)]], body)
    // As httpJsonBodyParser leaves it
    const answer = await Reflect.apply(lambdaWebhookHandler(options), undefined, [{ ...event, body: envelope }])
    expect(answer).toMatchObject({ statusCode: 500, body: '{"error":"not_processed"}' })
    expect(String(seen.errors[0])).toMatch(/^TypeError: .*httpJsonBodyParser/)
  })

  it("is a TypeError of Fetch's adapter too", async () => {
    const headers = { "service-signature": signNow(body) }
    const request = new Request("http://consumer.example/", { method: "POST", body, headers })
    await request.json()
    await expect(verifyFetchWebhook(request, { secret })).rejects.toThrow(/request\.json\(\)/)
  })
})

describe("a Lambda function", () => {
  const receiving = (change: Partial<LambdaWebhookEvent> & { readonly isBase64Encoded?: boolean }, max = 300_000) => {
    const { options, seen } = watched({ maxBodyBytes: max })
    const event = lambdaEvents["1.0"]("POST", [["Service-Signature", signNow(body)]], body)
    return lambdaWebhookHandler(options)({ ...event, ...change }).then(({ statusCode }) => [
      statusCode,
      seen.refused.join()
    ])
  }
  const base64 = Buffer.from(body).toString("base64")
  const header = signNow(body)

  it.each([
    ["whose base64 flag is missing", { body: base64 }, [204, ""]],
    ["whose base64 flag is set for text", { isBase64Encoded: true }, [204, ""]],
    ["without a body", { body: null }, [400, "signature_mismatch"]],
    ["with neither text nor base64", { body: "\u0000é=" }, [400, "signature_mismatch"]],
    ["without headers", { headers: null, multiValueHeaders: null }, [400, "missing_header"]],
    [
      "with the headers of a load balancer",
      { headers: null, multiValueHeaders: { "service-signature": [header] } },
      [204, ""]
    ],
    [
      "with a repeated signature",
      { multiValueHeaders: { "service-signature": [header, header] } },
      [400, "malformed_header"]
    ],
    [
      "with a repeated signature in format 2.0",
      { multiValueHeaders: null, headers: { "service-signature": `${header},${header}` } },
      [400, "malformed_header"]
    ],
    ["too large once it is decoded", { body: Buffer.alloc(300_001, "{").toString("base64") }, [413, "body_too_large"]],
    ["of no HTTP request", { httpMethod: undefined }, [405, ""]]
  ] as const)("answers an event %s", async (_, change, expected) => {
    expect(await Reflect.apply(receiving, undefined, [change])).toEqual(expected)
  })
})

describe("a Fastify app", () => {
  it.scopedLive("keeps its own body parser beside the kit's route", function* () {
    const url = yield* serveFastify(watched().options)
    const order = yield* send(fetch, url.replace("/webhooks", "/orders"))({ body: '{"id":4711}' })
    expect([order.status, order.text]).toEqual([200, '{"id":4711}'])
  })
})

describe("a handler", () => {
  it.each([
    ["no secret", { secret: [] }],
    ["an empty secret", { secret: "" }],
    ["a secret with the line break of its file", { secret: `${secret}\n` }],
    ["a secret in quotes", { secret: [secret, `"${previousSecret}"`] }],
    ["no onEvent", { onEvent: undefined }],
    ["a bound that is no number", { maxBodyBytes: Number.NaN }],
    ["an onRefused that can't be called", { onRefused: true }]
  ])("is not made with %s", (_, change) => {
    const { options } = watched()
    for (const make of [
      nodeWebhookHandler,
      expressWebhookHandler,
      fastifyWebhook,
      koaWebhookHandler,
      lambdaWebhookHandler,
      fetchWebhookHandler
    ]) {
      // As a consumer without types writes it
      expect(() => Reflect.apply(make, undefined, [{ ...options, ...change }])).toThrow(TypeError)
    }
  })

  it.scopedLive("hands what `onError` throws to Express", function* () {
    const thrown: Array<unknown> = []
    const { options } = watched({
      onEvent: () => Promise.reject(new Error("first")),
      onError: () => {
        throw new Error("second")
      }
    })
    const app = express()
    app.post("/webhooks", expressWebhookHandler(options))
    const answering: express.ErrorRequestHandler = (error, _request, response, _next) => {
      thrown.push(error)
      response.sendStatus(500)
    }
    app.use(answering)
    const answer = yield* Effect.flatMap(serve(app), (url) => send(fetch, url)())
    expect([answer.status, String(thrown[0])]).toEqual([500, "Error: second"])
  })

  it.scopedLive("answers 500, and logs it, where `onRefused` throws and nothing else would catch it", function* () {
    const logged = yield* logOfErrors
    const failure = new Error("The log is away")
    const { options } = watched({
      onRefused: () => {
        throw failure
      }
    })
    const answer = yield* send(fetch, yield* serve(nodeWebhookHandler(options)))({ headers: {} })
    expect([answer.status, answer.text]).toEqual([500, '{"error":"not_processed"}'])
    expect(logged()).toEqual([failure])
  })

  it.scopedLive("answers as ever, and logs it, if the promise of `onRefused` or `onError` is rejected", function* () {
    const logged = yield* logOfErrors
    const failures = [new Error("The log is away"), new Error("It still is")]
    const { options } = watched({
      onEvent: () => Promise.reject(new Error("The database is away")),
      onRefused: () => Promise.reject(failures[0]),
      onError: () => Promise.reject(failures[1])
    })
    const sendIt = send(fetch, yield* serve(nodeWebhookHandler(options)))
    expect((yield* sendIt({ headers: {} })).status).toBe(400)
    expect((yield* sendIt()).status).toBe(503)
    expect(logged()).toEqual(failures)
  })

  it.scopedLive("survives a sender that goes away in the middle of its body", function* () {
    const { options, seen } = watched()
    const url = yield* serve(nodeWebhookHandler(options))
    const request = sendRequest(url, { method: "POST", headers: { "content-length": 1000 } })
    request.on("error", () => {})
    request.write(body.slice(0, 10), () => setImmediate(() => request.destroy()))
    yield* eventuallyTrue("the lost request is reported", () => seen.errors.length === 1)
    expect(String(seen.errors[0])).toContain("before its body was complete")
    expect((yield* send(fetch, url)()).status).toBe(204)
  })

  it("stands on `receiveWebhook`, which serves any other framework", async () => {
    const { options, seen } = watched()
    const headers: Record<string, string> = { "service-signature": signNow(body) }
    const answer = await receiveWebhook(
      { method: "POST", header: (name) => headers[name], body: async () => body },
      options
    )
    expect(answer).toEqual({ status: 204, headers: {}, body: "" })
    expect(seen.events).toEqual([{ event: envelope, delivery: { id: null } }])
  })
})

describe("verifyNodeWebhook and verifyFetchWebhook", () => {
  it.scopedLive("answer the event to a handler that writes its own response", function* () {
    const url = yield* serve((request, response) => {
      verifyNodeWebhook(request, { secret }).then(
        (event) => response.writeHead(202).end(event.id),
        (error) => response.writeHead(418).end(error.reason)
      )
    })
    const accepted = yield* send(fetch, url)()
    expect([accepted.status, accepted.text]).toEqual([202, envelope.id])
    expect((yield* send(fetch, url)({ headers: {} })).text).toBe("missing_header")
    const request = () => new Request(url, { method: "POST", body, headers: { "service-signature": signNow(body) } })
    expect(yield* Effect.promise(() => verifyFetchWebhook(request(), { secret }))).toEqual(envelope)
    const refused = verifyFetchWebhook(request(), { secret, maxBodyBytes: 10 })
    yield* Effect.promise(() => expect(refused).rejects.toMatchObject({ reason: "body_too_large" }))
  })
})
