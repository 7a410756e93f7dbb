import type { HttpServerError } from "@effect/platform"
import { Effect, Layer, type Redacted, Runtime } from "effect"
import { listen, type ServerOptions, stoppingLayer } from "../../http/Server.ts"
import { Stopping } from "../../kit/Stopping.ts"
import type { MigrationFailed } from "../../storage/Migrations.ts"
import { observeMetrics } from "../../telemetry/Metrics.ts"
import { connectedDirectoryLayer, type DirectoryRefusal } from "../DirectoryConnection.ts"
import { makeRouter } from "./Router.ts"
import { makeRouterTelemetry, type RouterTelemetryOptions } from "./RouterTelemetry.ts"
import { makeRoutes } from "./Routes.ts"
import { makeUpstreams } from "./Upstreams.ts"

/** The options of a router. */
export interface RouterServiceOptions extends ServerOptions, RouterTelemetryOptions {
  readonly directoryUrl: Redacted.Redacted
  /** Called with the port once the router listens. */
  readonly onListening?: (port: number) => void
}

/**
 * A router that listens until the layer closes, and then drains its connections like any server of the service. It has
 * no state of its own: run as many as you like behind a load balancer.
 */
export const routerLayer = (
  options: RouterServiceOptions
): Layer.Layer<never, DirectoryRefusal | MigrationFailed | HttpServerError.ServeError> =>
  Layer.scopedDiscard(
    Effect.gen(function* () {
      const runtime = yield* Effect.runtime<never>()
      const routes = yield* makeRoutes
      const upstreams = yield* makeUpstreams(routes.cells, {
        // A cell that hangs keeps a quarter of the connections busy at most
        mostAtOnce: Math.ceil(options.connectionLimit / 4),
        onChange: ({ name }, lives) => {
          Runtime.runFork(runtime)(
            lives
              ? Effect.logInfo(`The cell ${name} answers again`)
              : Effect.logWarning(`The cell ${name} does not answer`)
          )
        }
      })
      const stopping = yield* Stopping
      const { address, connections, serve } = yield* listen(options)
      yield* observeMetrics((metrics) =>
        Effect.sync(() => metrics.set("connected_payments.router.connection.count", connections(), []))
      )
      const telemetry = yield* makeRouterTelemetry(options)
      yield* serve(
        yield* makeRouter({ routes, upstreams, stopping, telemetry, trustedProxies: options.trustedProxies })
      )
      const port = address._tag === "TcpAddress" ? address.port : 0
      yield* Effect.logInfo(`Routing on port ${port}`)
      options.onListening?.(port)
    })
  ).pipe(
    Layer.provide(stoppingLayer),
    Layer.provide(connectedDirectoryLayer({ url: options.directoryUrl, cell: null }))
  )
