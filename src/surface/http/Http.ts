import {
  Etag,
  FileSystem,
  HttpApiBuilder,
  type HttpApp,
  HttpMiddleware,
  HttpPlatform,
  HttpRouter,
  HttpServer,
  Path
} from "@effect/platform"
import { Context, Effect, Layer, Option, Scope } from "effect"
import { deliveriesHttp } from "../../destinations/deliveries/Http.ts"
import { endpointsHttp } from "../../destinations/endpoints/Http.ts"
import { eventReplaysHttp } from "../../destinations/event-replays/Http.ts"
import { eventStreamHttp } from "../../destinations/event-streams/Http.ts"
import { eventTriggersHttp } from "../../destinations/event-triggers/Http.ts"
import { eventsHttp } from "../../destinations/events/Http.ts"
import { recoveriesHttp } from "../../destinations/recoveries/Http.ts"
import { statisticsHttp } from "../../destinations/statistics/Http.ts"
import { WorkerLife } from "../../engine/worker/WorkerLife.ts"
import {
  type AuthenticationOptions,
  addressLimitsLayer,
  authenticationLayer,
  keyAuthenticationLayer,
  sessionAuthenticationLayer
} from "../../identity/AuthenticationLive.ts"
import { auditHttp } from "../../identity/audit/Http.ts"
import { currentKeyHttp } from "../../identity/current-key/Http.ts"
import { invitationHttp, invitationsHttp } from "../../identity/invitations/Http.ts"
import { keysHttp } from "../../identity/keys/Http.ts"
import { membersHttp } from "../../identity/members/Http.ts"
import { organizationsHttp } from "../../identity/organizations/Http.ts"
import { RequestAdmission, type RequestAdmissionOptions } from "../../identity/RequestAdmission.ts"
import { returnUrlsHttp } from "../../identity/return-urls/Http.ts"
import { sessionHttp, signInHttp } from "../../identity/sign-in/Http.ts"
import { type AccountPagesOptions, accountPagesHttp } from "../../payments/account-pages/Http.ts"
import { type PayPagesOptions, payPagesHttp } from "../../payments/checkout-pages/PayHttp.ts"
import { accountConnectionHttp } from "../../payments/connecting/Http.ts"
import { providerHttp } from "../../payments/Http.ts"
import { type ImageBounds, productImagesHttp, publicImagesHttp } from "../../payments/images/Http.ts"
import { ServiceUnavailable } from "../../platform/errors/Errors.ts"
import { Stopping } from "../../platform/kit/Request.ts"
import { makeReadiness } from "../../platform/storage/Readiness.ts"
import { Api, operations } from "../contract/Api.ts"
import { operationKey, takesBody } from "../contract/Operations.ts"
import { eventSchemaPages } from "../docs/EventSchemas.ts"
import { guidePages } from "../docs/GuidePages.ts"
import { openApiPage } from "../docs/OpenApiText.ts"
import { mcpHttp } from "../mcp/Http.ts"
import { packagePages } from "../packages/Packages.ts"
import { entriesLayer, inboundHttp, servingUntraced } from "./Answers.ts"
import { consolePages } from "./console/Console.ts"
import { type EdgeOptions, edge } from "./Edge.ts"
import { checkoutReturnPages, frontPage } from "./FrontPage.ts"

const healthHttp = HttpApiBuilder.group(Api, "health", (handlers) =>
  Effect.map(Effect.all([makeReadiness(), Stopping, Effect.serviceOption(WorkerLife)]), ([ready, stopping, worker]) =>
    handlers
      .handle("live", () =>
        Effect.suspend(() => {
          const state = Option.getOrUndefined(worker)?.state()
          return state?.isStuck === true
            ? new ServiceUnavailable({ message: `The worker of this process ${state.doing}.` })
            : Effect.succeed({ status: "live" as const })
        })
      )
      .handle("ready", () =>
        stopping.begun
          ? new ServiceUnavailable({ message: "This process is stopping." })
          : Effect.as(ready, { status: "ready" as const })
      )
  )
)

const permissions = new Map(
  operations.flatMap(({ method, path, permission }) =>
    permission === undefined ? [] : [[operationKey(method, path), permission] as const]
  )
)

const withBody: ReadonlySet<string> = new Set(
  operations.filter(takesBody).map(({ method, path }) => operationKey(method, path))
)

export type HttpOptions = Omit<AuthenticationOptions, "permissionOf" | "takesBody"> &
  RequestAdmissionOptions &
  EdgeOptions &
  PayPagesOptions &
  AccountPagesOptions & { readonly http: ImageBounds; readonly publicUrl: string }

const authenticationOf = (options: HttpOptions): AuthenticationOptions => ({
  ...options,
  permissionOf: (method, path) => permissions.get(operationKey(method, path)),
  takesBody: (method, path) => withBody.has(operationKey(method, path))
})

const groups = (options: HttpOptions) => {
  const authentication = authenticationOf(options)
  return Layer.mergeAll(
    providerHttp,
    productImagesHttp,
    payPagesHttp(options),
    publicImagesHttp({ ...options, ...options.http }),
    endpointsHttp,
    deliveriesHttp,
    recoveriesHttp,
    eventStreamHttp,
    eventTriggersHttp,
    eventsHttp,
    eventReplaysHttp,
    statisticsHttp,
    auditHttp,
    signInHttp(options),
    sessionHttp,
    organizationsHttp,
    membersHttp,
    invitationsHttp,
    invitationHttp(options),
    keysHttp,
    returnUrlsHttp,
    accountConnectionHttp,
    accountPagesHttp(options),
    currentKeyHttp,
    inboundHttp,
    healthHttp
  ).pipe(
    Layer.provide([
      authenticationLayer(authentication),
      sessionAuthenticationLayer(authentication),
      keyAuthenticationLayer(authentication),
      addressLimitsLayer
    ])
  )
}

/** The whole HTTP surface as one app, for a server of ours or of an embedding team. */
export class Surface extends Context.Tag("connected-payments/surface/http/Surface")<
  Surface,
  HttpApp.Default<never, HttpRouter.HttpRouter.DefaultServices>
>() {}

/**
 * The surface on the server. Each request step that provides a service copies the server's context, so this context
 * holds only what the platform's handlers need, not all services: our handlers were built with theirs.
 */
const served = Layer.scopedDiscard(
  Effect.flatMap(Surface, (app) =>
    Effect.mapInputContext(servingUntraced(HttpServer.serveEffect(app)), (context: Context.Context<RequestContext>) =>
      Context.pick(
        HttpServer.HttpServer,
        Scope.Scope,
        FileSystem.FileSystem,
        Path.Path,
        HttpPlatform.HttpPlatform,
        Etag.Generator
      )(context)
    )
  )
)

type RequestContext = HttpServer.HttpServer | HttpRouter.HttpRouter.DefaultServices | Scope.Scope

/** Serves the surface on the `HttpServer` in its context. */
export const httpLayer = (options: HttpOptions) =>
  served.pipe(
    // The edge creates the request's span
    HttpMiddleware.withTracerDisabledWhen(() => true),
    Layer.provide(surfaceLayer(options))
  )

/**
 * The HTTP surface: the API, the inbound entries, `/openapi.json`, the guides at `/docs`, the packages at `/packages`, the
 * event schemas, health, checkout pages at `/pay`, the console, the page at `/` and the pages that payers return to.
 */
export const surfaceLayer = (options: HttpOptions) =>
  Layer.effect(Surface, HttpApiBuilder.httpApp).pipe(
    Layer.provide(openApiPage),
    Layer.provide(checkoutReturnPages),
    Layer.provide(frontPage(options)),
    Layer.provide(consolePages(options)),
    Layer.provide(mcpHttp(options)),
    Layer.provide(eventSchemaPages),
    Layer.provide(guidePages),
    Layer.provide(packagePages(options)),
    Layer.provide(edge(options)),
    Layer.provide(entriesLayer(options)),
    Layer.provide(HttpApiBuilder.api(Api)),
    Layer.provide(groups(options)),
    Layer.provide(RequestAdmission.layer(options)),
    // Paths are matched as written. Their parts may be as long as a request line, since a schema checks them: the
    // router's own bound of 100 characters is below the contract's 255 and would answer "no such route"
    Layer.provide(
      HttpRouter.setRouterConfig({ maxParamLength: 65_536, caseSensitive: true, ignoreDuplicateSlashes: false })
    ),
    Layer.provide([HttpApiBuilder.Router.Live, HttpApiBuilder.Middleware.layer])
  )
