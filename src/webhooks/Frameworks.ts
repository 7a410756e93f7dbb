import type { IncomingMessage } from "node:http"
import { receive } from "./Node.ts"
import { checkOptions, receiveWebhook, type WebhookAnswer, type WebhookHandlerOptions } from "./Receive.ts"

/** Webhook endpoints for Fastify, Koa and AWS Lambda. Their types are declared here, so none is a dependency. */

/** The parts of a Fastify instance that the plugin uses. */
export interface FastifyScope {
  removeAllContentTypeParsers(): unknown
  addContentTypeParser(
    contentType: string,
    parser: (request: unknown, payload: unknown, done: (error: Error | null) => void) => void
  ): unknown
  all(path: string, handler: (request: FastifyWebhookRequest, reply: FastifyWebhookReply) => Promise<unknown>): unknown
}

/** The parts of a Fastify request that the plugin uses. */
export interface FastifyWebhookRequest {
  readonly raw: IncomingMessage
  readonly body?: unknown
}

/** The parts of a Fastify reply that the plugin uses. */
export interface FastifyWebhookReply {
  code(status: number): unknown
  headers(headers: Record<string, string>): unknown
  send(body?: string): unknown
}

/**
 * A webhook endpoint for Fastify (4 and 5), as a plugin: its content type parser, which leaves the body as it is, is for
 * its own route alone.
 *
 * ```ts
 * app.register(fastifyWebhook({ secret, organizationId, livemode: false, onEvent }), { prefix: "/webhooks" })
 * ```
 *
 * If a `preParsing` hook of the app reads the body, the response is 500 and `onError` gets a `TypeError` that says so,
 * unless the hook keeps the text in `request.rawBody`. Errors thrown by `onRefused` or `onError` go to Fastify's own
 * error handler.
 */
export const fastifyWebhook = <Own>(options: WebhookHandlerOptions<Own>): ((scope: FastifyScope) => Promise<void>) => {
  checkOptions(options)
  return async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser("*", (_request, _payload, done) => done(null))
    scope.all("/", async (request, reply) => {
      const { body, headers, status } = await receive(request.raw, request, options)
      reply.code(status)
      reply.headers({ ...headers })
      return reply.send(body === "" ? undefined : body)
    })
  }
}

/** The parts of a Koa context that the handler uses. */
export interface KoaWebhookContext {
  readonly req: IncomingMessage
  /** Where body parsers leave `body` and `rawBody`. */
  readonly request: object
  status: number
  body: unknown
  set(headers: { [name: string]: string }): void
}

/**
 * A webhook endpoint for Koa. It reads the raw body itself, so use it before a body parser; behind koa-bodyparser, it
 * takes `ctx.request.rawBody`.
 *
 * ```ts
 * const receive = koaWebhookHandler({ secret, organizationId, livemode: false, onEvent })
 * app.use((ctx, next) => (ctx.path === "/webhooks" ? receive(ctx) : next()))
 * app.use(bodyParser())
 * ```
 *
 * If a parser has read the body and kept no text, the response is 500 and `onError` gets a `TypeError` that says so.
 * Errors thrown by `onRefused` or `onError` go to Koa's own error handler.
 */
export const koaWebhookHandler = <Own>(
  options: WebhookHandlerOptions<Own>
): ((context: KoaWebhookContext) => Promise<void>) => {
  checkOptions(options)
  return async (context) => {
    const { body, headers, status } = await receive(context.req, context.request, options)
    context.status = status
    context.set({ ...headers })
    context.body = body === "" ? null : body
  }
}

/**
 * The event of a Lambda function behind API Gateway (REST APIs' format 1.0, HTTP APIs' 1.0 and 2.0), a function URL or
 * a load balancer.
 */
export interface LambdaWebhookEvent {
  /** Format 1.0. */
  readonly httpMethod?: string
  /** In format 2.0 with the method, as `http.method`. */
  readonly requestContext?: object
  readonly headers?: { readonly [name: string]: string | undefined } | null | undefined
  /** Format 1.0, where `headers` has only the last value of a repeated one. */
  readonly multiValueHeaders?: { readonly [name: string]: ReadonlyArray<string> | undefined } | null | undefined
  /** The request's text, or its bytes in base64. */
  readonly body?: string | null | undefined
}

const lambdaHeader = ({ headers, multiValueHeaders }: LambdaWebhookEvent, name: string): string | undefined => {
  const valueIn = <Value>(all: { readonly [name: string]: Value | undefined } | null | undefined) =>
    Object.entries(all ?? {}).find(([key]) => key.toLowerCase() === name)?.[1]
  return valueIn(multiValueHeaders)?.join(",") ?? valueIn(headers)
}

const lambdaBody = (body: unknown): Uint8Array => {
  if (typeof body !== "string" && body !== null && body !== undefined) {
    throw new TypeError(
      "The event's body was parsed before its signature was checked, by a middleware such as httpJsonBodyParser: leave " +
        "it out for this function. The signature is over the exact bytes."
    )
  }
  // An event is a JSON object, whose braces base64 lacks: this tells more surely than `isBase64Encoded`, which local
  // emulators and adapters leave out
  const text = body ?? ""
  return Buffer.from(text, /^[A-Za-z0-9+/]+={0,2}$/.test(text) ? "base64" : "utf8")
}

/**
 * A webhook endpoint as an AWS Lambda function, also with `isBase64Encoded` missing or wrong.
 *
 * ```ts
 * export const handler = lambdaWebhookHandler({ secret, organizationId, livemode: false, onEvent })
 * ```
 *
 * If a middleware has parsed the body, the response is 500 and `onError` gets a `TypeError` that says so. Rejects only
 * if `onRefused` or `onError` throws.
 */
export const lambdaWebhookHandler = <Own>(
  options: WebhookHandlerOptions<Own>
): ((event: LambdaWebhookEvent) => Promise<{
  readonly statusCode: number
  readonly headers: WebhookAnswer["headers"]
  readonly body: string
}>) => {
  checkOptions(options)
  return async (event) => {
    const { http }: { readonly http?: { readonly method?: string } } = event.requestContext ?? {}
    const { body, headers, status } = await receiveWebhook(
      {
        method: event.httpMethod ?? http?.method,
        header: (name) => lambdaHeader(event, name),
        body: async () => lambdaBody(event.body)
      },
      options
    )
    return { statusCode: status, headers, body }
  }
}
