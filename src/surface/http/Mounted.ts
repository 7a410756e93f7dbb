import { HttpApp, HttpServerRequest } from "@effect/platform"
import { layerContext } from "@effect/platform-node/NodeHttpServer"
import { Context, Effect, Layer, Option } from "effect"
import { type HttpOptions, Surface, surfaceLayer } from "./Http.ts"

/** Who sent a `fetch`-style request, which does not say so itself. */
class Sender extends Context.Tag("connected-payments/surface/http/Sender")<Sender, string>() {}

/** The whole HTTP surface, notifications included, for a server of an embedding team's own: see `embeddedAppLayer`. */
export class PaymentsApp extends Context.Tag("connected-payments/surface/http/PaymentsApp")<
  PaymentsApp,
  {
    /**
     * For Effect's servers: `HttpRouter.mountApp("/payments", httpApp)`, or `HttpServer.serve(httpApp)`. The server has
     * to be `NodeHttpServer`, whose messages have the exact bytes of a notification.
     */
    readonly httpApp: HttpApp.Default
    /**
     * For every other server: answers a request whose URL begins with a path of the service's own, without a prefix. Never
     * rejects.
     *
     * @param remoteAddress the client's IP address, by which limits count. Without it all clients share one limit
     */
    readonly fetch: (request: Request, remoteAddress?: string) => Promise<Response>
  }
>() {}

/** Takes the sender's address from the context into the request. */
const withSender = <E, R>(app: HttpApp.Default<E, R>): HttpApp.Default<E, R> =>
  Effect.flatMap(
    Effect.serviceOption(Sender),
    Option.match({
      onNone: () => app,
      onSome: (remoteAddress) =>
        Effect.updateService(app, HttpServerRequest.HttpServerRequest, (request) => request.modify({ remoteAddress }))
    })
  )

/** The surface as a `PaymentsApp`: nothing listens. */
export const mountedLayer = (options: HttpOptions) =>
  Layer.scoped(
    PaymentsApp,
    Effect.gen(function* () {
      const context = yield* Layer.build(layerContext)
      const httpApp: HttpApp.Default = Effect.provide(yield* Surface, context)
      const handle = HttpApp.toWebHandlerRuntime(yield* Effect.runtime<never>())(withSender(httpApp))
      return {
        httpApp,
        fetch: (request, remoteAddress) =>
          handle(request, remoteAddress === undefined ? undefined : Context.make(Sender, remoteAddress))
      }
    })
  ).pipe(Layer.provide(surfaceLayer(options)))
