import type { IncomingMessage, RequestListener, ServerResponse } from "node:http"
import { Effect, Either, Runtime, type Scope } from "effect"
import { type ApiError, ServiceUnavailable, ValidationFailed } from "../../errors/Errors.ts"
import { refusalTo } from "../../http/Connections.ts"
import { bodyRefused, readMessage } from "../../kit/Body.ts"
import { addressBehind, networkOf } from "../../kit/ClientAddress.ts"
import type { Stopping } from "../../kit/Stopping.ts"
import type { TrustedProxies } from "../../settings/Forms.ts"
import type { RoutingTag } from "../RoutingTag.ts"
import { BodyBudget } from "./BodyBudget.ts"
import { type BodyTarget, maxBytesOf, readBodyTarget } from "./BodyTarget.ts"
import { forward, hasBody, type Passing, type Unanswered } from "./Forward.ts"
import { Locations } from "./Locations.ts"
import type { RefusalReason, Routed, RouterTelemetry } from "./RouterTelemetry.ts"
import { directoryAway, type Found, keyOf, type Routes } from "./Routes.ts"
import { type BodyPart, type Target, targetOf } from "./Target.ts"
import type { Upstream, Upstreams } from "./Upstreams.ts"

/**
 * The router: passes each request to the cell that it belongs to. It decides nothing but that; every cell authenticates,
 * limits and answers as if it were the only one.
 */

export interface RouterOptions {
  readonly routes: Routes
  readonly upstreams: Upstreams
  readonly stopping: Stopping["Type"]
  readonly telemetry: RouterTelemetry
  readonly trustedProxies: TrustedProxies
}

const cellAway = () =>
  new ServiceUnavailable({
    message: "The part of the service that has this organization can't be reached at the moment; try again shortly.",
    retryAfter: "5 seconds"
  })

const routeUnknown = () =>
  new ServiceUnavailable({
    message: "The service can't find out at the moment where this belongs; try again shortly.",
    retryAfter: "5 seconds"
  })

/** Whether the status of a page says that a cell has it, or had it. */
const hasPage = (status: number): boolean => status < 400 || status === 410

/** Whether it says neither that nor that there is none: its database is away, or this client has asked too often. */
const isUndecided = (status: number): boolean => status !== 404 && !hasPage(status)

/** There is no room for more bodies. */
class NoMemory extends ServiceUnavailable {
  constructor() {
    super({ retryAfter: "1 second" })
  }
}

/** Answers with an error of the router's own, in the form in which cells answer theirs. */
const refuse = (routed: Routed, reason: RefusalReason, error: ApiError): void => {
  const { request, response } = routed
  if (response.headersSent || response.destroyed) return
  routed.refusal = reason
  const { body, headers } = refusalTo(error, request.url ?? "")
  routed.requestId = headers["request-id"]
  // The unread rest of a body would be taken for the next request
  if (!request.complete) response.setHeader("connection", "close")
  response.writeHead(error.status, headers)
  response.end(request.method === "HEAD" ? undefined : body)
}

const answerHealth = (response: ServerResponse, status: "live" | "ready"): void => {
  response.writeHead(200, { "content-type": "application/json", "cache-control": "no-store" })
  response.end(JSON.stringify({ status }))
}

interface Client {
  readonly address: string
  readonly network: string
}

class Router {
  readonly #options: RouterOptions
  readonly #locations = new Locations()
  readonly #budget = new BodyBudget()
  readonly #read: (request: IncomingMessage, limit: number) => Promise<Either.Either<Buffer, ApiError | null>>

  constructor(options: RouterOptions, runtime: Runtime.Runtime<never>) {
    this.#options = options
    this.#read = (request, limit) =>
      Runtime.runPromise(runtime)(
        Effect.either(
          Effect.mapError(readMessage(request, limit), (error) => (error._tag === "BodyLost" ? null : error))
        )
      )
  }

  readonly handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const target = targetOf(request.method ?? "", request.url ?? "", request.headers)
    const routed = this.#options.telemetry.begin(request, response, target)
    switch (target.by) {
      case "organization":
        return this.#pass(await this.#options.routes.find(keyOf.organization(target.id)), routed)
      case "tag":
        return this.#pass(await this.#cellOfTag(target.tag), routed)
      case "body":
        return this.#passByBody(target.part, routed)
      case "search":
        return this.#search(target.path, routed)
      case "anything":
        return this.#passAnywhere(target.tag, routed)
      case "health":
        return this.#answerHealth(target, routed)
      case "home":
        return this.#pass(null, routed)
    }
  }

  get #home(): string | undefined {
    return this.#options.routes.cells().find(({ home }) => home)?.name
  }

  #upstream(name: string | undefined): Upstream | undefined {
    return name === undefined ? undefined : this.#options.upstreams.get(this.#options.routes.cells(), name)
  }

  #cellOfTag(tag: RoutingTag): Found | Promise<Found> {
    if (tag.kind === "organization") return this.#options.routes.find(keyOf.organization(tag.id))
    return this.#options.routes.cells().some(({ name }) => name === tag.name) ? tag.name : null
  }

  #passing(routed: Routed, network: string): Passing {
    return { routed, network, trustedProxies: this.#options.trustedProxies }
  }

  /** Passes a request to a cell, or to the home if the directory knows none. */
  async #pass(found: Found, routed: Routed, body?: Buffer): Promise<void> {
    const upstream = found === directoryAway ? undefined : this.#upstream(found ?? this.#home)
    if (upstream === undefined) return refuse(routed, "route_unknown", routeUnknown())
    routed.cell = upstream.cell.name
    const network = this.#networkOf(routed.request)
    const state = upstream.state(network)
    if (state !== "open") return refuse(routed, state === "busy" ? "cell_busy" : "cell_away", cellAway())
    const passing = this.#passing(routed, network)
    this.#conclude(await forward(upstream, body === undefined ? passing : { ...passing, body }), routed)
  }

  #conclude(ended: Unanswered | number, routed: Routed): void {
    if (typeof ended === "object") {
      refuse(routed, "request", ended)
    } else if (ended === "unsendable") {
      refuse(routed, "request", new ValidationFailed({ message: "The request is not valid HTTP." }))
    } else if (ended === "unreached" || ended === "lost") {
      refuse(routed, "cell_away", cellAway())
    }
  }

  async #passByBody(part: BodyPart, routed: Routed): Promise<void> {
    const limit = maxBytesOf(part)
    const { request } = routed
    const held = this.#budget.begin(this.#networkOf(request))
    let length = 0
    const reading = this.#read(request, limit)
    request.on("data", (chunk: Buffer) => {
      length += chunk.length
      // What is beyond the limit is not kept
      if (length <= limit && !held.add(chunk.length)) request.emit(bodyRefused, new NoMemory())
    })
    try {
      const read = await reading
      if (Either.isLeft(read)) {
        if (read.left !== null) refuse(routed, read.left instanceof NoMemory ? "no_memory" : "request", read.left)
        return
      }
      const said = readBodyTarget(part, read.right)
      const found =
        said === undefined
          ? null
          : said.by === "tag"
            ? await this.#cellOfTag(said.tag)
            : await this.#options.routes.find(
                said.by === "account" ? keyOf.account(said.environment, said.accountId) : keyOf.person(said.emailHash)
              )
      if (part.endsWith("notification")) this.#countNotification(said, found)
      await this.#pass(found, routed, read.right)
    } finally {
      held.giveBack()
    }
  }

  #countNotification(said: BodyTarget, found: Found): void {
    const account =
      said === undefined ? "none" : found === directoryAway ? "unanswered" : found === null ? "unknown" : "known"
    this.#options.telemetry.metrics?.count("connected_payments.router.notification.count", [account])
  }

  #networkOf({ headers, socket }: IncomingMessage): string {
    const forwarded = [headers["x-forwarded-for"] ?? []].flat().join(",")
    return networkOf(addressBehind(this.#options.trustedProxies, socket.remoteAddress ?? "unknown", forwarded))
  }

  /** The cells in the order in which they are asked: a preferred one, the home, then all others. */
  #inOrder(preferred: string | undefined): ReadonlyArray<string> {
    const names = this.#options.routes.cells().map(({ name }) => name)
    const first = [preferred, this.#home].filter((name) => name !== undefined)
    return [...new Set([...first, ...names])]
  }

  /**
   * Asks cells in turn until one has answered. Returns how the last one ended, and whether one could not be asked.
   *
   * @param isDeclined the statuses after which the next one is asked
   */
  async #ask(
    names: ReadonlyArray<string>,
    routed: Routed,
    isDeclined: (status: number) => boolean
  ): Promise<{ readonly answeredBy: string | undefined; readonly isAway: boolean }> {
    const network = this.#networkOf(routed.request)
    let isAway = names.length === 0
    for (const name of names) {
      const upstream = this.#upstream(name)
      if (upstream?.state(network) !== "open") {
        isAway = true
        continue
      }
      const ended = await forward(upstream, { ...this.#passing(routed, network), body: null, isDeclined })
      if (ended === "unreached" || ended === "lost") {
        isAway = true
      } else if (typeof ended !== "number" || !isDeclined(ended)) {
        this.#conclude(ended, routed)
        return { answeredBy: name, isAway }
      }
    }
    return { answeredBy: undefined, isAway }
  }

  /** What every cell answers alike: one that is away is replaced by another. */
  async #passAnywhere(tag: RoutingTag | undefined, routed: Routed): Promise<void> {
    if (hasBody(routed.request)) return this.#pass(null, routed)
    const found = tag === undefined ? null : await this.#cellOfTag(tag)
    const preferred = typeof found === "string" ? found : undefined
    const { answeredBy } = await this.#ask(this.#inOrder(preferred), routed, () => false)
    if (answeredBy === undefined) refuse(routed, "cell_away", cellAway())
  }

  /** Looks for the cell that has a public page or image. */
  async #search(path: string, routed: Routed): Promise<void> {
    const { request } = routed
    const isRead = request.method === "GET" || request.method === "HEAD"
    if (!isRead || hasBody(request)) return this.#pass(await this.#locate(path, request), routed)
    const located = this.#locations.get(path)
    let undecided: string | undefined
    const { answeredBy, isAway } = await this.#ask(this.#inOrder(located), routed, (status) => {
      if (isUndecided(status)) undecided ??= routed.cell
      return !hasPage(status)
    })
    if (answeredBy !== undefined) return this.#locations.set(path, answeredBy)
    // The one that is away may have it
    if (isAway) return refuse(routed, "cell_away", cellAway())
    // None has it, or it is closed: what the cell says that may have it, or had it
    await this.#pass(undecided ?? located ?? null, routed)
  }

  /** The cell that has a page; asks without sending it what the request does. */
  async #locate(path: string, request: IncomingMessage): Promise<Found> {
    const located = this.#locations.get(path)
    if (located !== undefined) return located
    const address = addressBehind(
      this.#options.trustedProxies,
      request.socket.remoteAddress ?? "unknown",
      [request.headers["x-forwarded-for"] ?? []].flat().join(",")
    )
    const network = networkOf(address)
    let isAway = false
    let undecided: string | null = null
    for (const name of this.#inOrder(undefined)) {
      const upstream = this.#upstream(name)
      const status =
        upstream?.state(network) === "open" ? await this.#headOf(upstream, path, { address, network }) : undefined
      if (status === undefined) {
        isAway = true
      } else if (hasPage(status)) {
        this.#locations.set(path, name)
        return name
      } else if (isUndecided(status)) {
        undecided ??= name
      }
    }
    return isAway ? directoryAway : undecided
  }

  /** The status of a page; undefined if the cell did not answer. */
  async #headOf(upstream: Upstream, path: string, client: Client): Promise<number | undefined> {
    const abort = new AbortController()
    const { ended } = upstream.begin(client.network, () => abort.abort())
    try {
      const { body, statusCode } = await upstream.pool.request({
        method: "HEAD",
        path: encodeURI(path),
        headers: { "x-forwarded-for": client.address },
        signal: abort.signal
      })
      await body.dump()
      return statusCode
    } catch {
      // The caller treats it like a cell that is away
      return undefined
    } finally {
      ended()
    }
  }

  #answerHealth({ probe }: Extract<Target, { readonly by: "health" }>, routed: Routed): void {
    const { routes, stopping } = this.#options
    const { response } = routed
    if (probe === "live") {
      answerHealth(response, probe)
    } else if (stopping.begun) {
      refuse(routed, "route_unknown", new ServiceUnavailable({ message: "This process is stopping." }))
    } else if (routes.cells().length === 0) {
      refuse(routed, "route_unknown", routeUnknown())
    } else {
      answerHealth(response, probe)
    }
  }
}

/** The listener of a router. */
export const makeRouter = (options: RouterOptions): Effect.Effect<RequestListener, never, Scope.Scope> =>
  Effect.map(Effect.runtime<never>(), (runtime) => {
    const router = new Router(options, runtime)
    const report = (error: unknown): void => {
      Runtime.runFork(runtime)(Effect.logError("A request failed in the router by a defect", error))
    }
    return (request, response) => {
      router.handle(request, response).catch((error: unknown) => {
        report(error)
        response.destroy()
      })
    }
  })
