import { createServer, type RequestListener, type Server, type ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { SqlClient } from "@effect/sql"
import { Data, Effect, Exit, Layer, Runtime } from "effect"
import { WorkerLife, type WorkerState } from "../../engine/worker/WorkerLife.ts"
import type { ServiceUnavailable } from "../../platform/errors/Errors.ts"
import { makeReadiness } from "../../platform/storage/Readiness.ts"

/** Health checks of a process that is only a worker: `/health/live` and `/health/ready`, and nothing else. */

export class ServeError extends Data.TaggedError("ServeError")<{ readonly cause: unknown }> {}

/** The maximum number of open connections: the oldest is closed, so that idle clients block no check. */
const connectionLimit = 64

const requestTimeout = 5000

const maxHeadBytes = 16 * 1024

interface Health {
  readonly status: 200 | 503
  readonly body: Readonly<Record<string, string>>
}

const startingUp: WorkerState = { doing: "starts", isStuck: false, isStopping: false }

const live = (state: WorkerState = startingUp): Health =>
  state.isStuck
    ? { status: 503, body: { status: "stuck", worker: state.doing } }
    : { status: 200, body: { status: "live", worker: state.doing } }

const unready = (reason: string): Health => ({ status: 503, body: { status: "not_ready", reason } })

/** Readiness check: the worker has started, is making progress, is not stopping; its database answers, its clock is right. */
const ready = (
  state: WorkerState | undefined,
  database: Effect.Effect<void, ServiceUnavailable>
): Effect.Effect<Health> => {
  if (state === undefined) return Effect.succeed(unready("the worker starts"))
  if (state.isStopping) return Effect.succeed(unready("the worker is stopping"))
  if (state.isStuck) return Effect.succeed(unready(`the worker ${state.doing}`))
  return Effect.match(database, {
    onFailure: ({ cause, message }) => unready(cause === undefined ? message : "the database does not answer"),
    onSuccess: (): Health => ({ status: 200, body: { status: "ready", worker: state.doing } })
  })
}

const answer = (response: ServerResponse, status: number, body: Readonly<Record<string, string>>): void => {
  const text = JSON.stringify(body)
  response
    .writeHead(status, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(text),
      "cache-control": "no-store",
      // Nothing further is read, not even a body
      connection: "close"
    })
    .end(text)
}

const makeListener = (
  runtime: Runtime.Runtime<never>,
  checks: ReadonlyMap<string, Effect.Effect<Health>>
): RequestListener => {
  const run = Runtime.runCallback(runtime)
  return ({ method, url = "" }, response) => {
    const check = checks.get(url.replace(/\?.*/s, ""))
    if (check === undefined) return answer(response, 404, { status: "not_found" })
    if (method !== "GET" && method !== "HEAD") return answer(response, 405, { status: "method_not_allowed" })
    run(check, {
      onExit: (exit) =>
        Exit.match(exit, {
          onSuccess: ({ body, status }) => answer(response, status, body),
          onFailure: () => answer(response, 503, { status: "not_ready", reason: "the check has failed" })
        })
    })
  }
}

const makeServer = (listener: RequestListener): Server => {
  const server = createServer(
    {
      maxHeaderSize: maxHeadBytes,
      headersTimeout: requestTimeout,
      requestTimeout,
      connectionsCheckingInterval: 1000,
      requireHostHeader: false
    },
    listener
  )
  const open = new Set<Socket>()
  server.setTimeout(requestTimeout)
  server.on("connection", (socket) => {
    const [oldest] = open
    if (open.size >= connectionLimit) oldest?.destroy()
    open.add(socket)
    socket.on("error", () => {})
    socket.on("close", () => open.delete(socket))
  })
  return server.on("clientError", (_error, socket) => socket.destroy())
}

/** Serves until the scope ends, which is after the worker's: it answers until the last attempt has ended. */
export const workerHealthLayer = ({
  host,
  port
}: {
  readonly host: string
  readonly port: number
}): Layer.Layer<never, ServeError, WorkerLife | SqlClient.SqlClient> =>
  Layer.scopedDiscard(
    Effect.gen(function* () {
      const { state } = yield* WorkerLife
      const database = yield* makeReadiness({ session: true })
      const runtime = yield* Effect.runtime<never>()
      const checks = new Map([
        ["/health/live", Effect.sync(() => live(state()))],
        ["/health/ready", Effect.suspend(() => ready(state(), database))]
      ])
      const server = yield* Effect.acquireRelease(
        Effect.sync(() => makeServer(makeListener(runtime, checks))),
        (server) =>
          Effect.sync(() => {
            server.close()
            server.closeAllConnections()
          })
      )
      yield* Effect.async<void, ServeError>((resume) => {
        const failed = (cause: unknown) => resume(new ServeError({ cause }))
        server.once("error", failed).listen(port, host, () => {
          server.off("error", failed)
          resume(Effect.void)
        })
      })
      const address = server.address()
      const at = typeof address === "object" && address !== null ? address.port : port
      yield* Effect.logInfo(`The worker's health: http://${host.includes(":") ? `[${host}]` : host}:${at}/health/ready`)
    })
  )
