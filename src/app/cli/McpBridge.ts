import { AsyncLocalStorage } from "node:async_hooks"
import type { Readable, Writable } from "node:stream"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js"
import {
  CancelledNotificationSchema,
  ErrorCode,
  InitializeResultSchema,
  isJSONRPCRequest,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
  type RequestId
} from "@modelcontextprotocol/sdk/types.js"
import { Effect, Option, Redacted } from "effect"
import { CommandFailed, explain } from "./Failure.ts"

export interface BridgeOptions {
  readonly url: URL
  readonly key: Redacted.Redacted
  /** The names of the tools to offer to the client. Default: all that the key may call. */
  readonly tools?: ReadonlyArray<string>
  readonly input: Readable
  readonly output: Writable
}

const failureOf = (message: JSONRPCMessage, error: unknown): Option.Option<JSONRPCMessage> =>
  isJSONRPCRequest(message)
    ? Option.some({
        jsonrpc: "2.0",
        id: message.id,
        error: { code: ErrorCode.InternalError, message: explain(error) }
      })
    : Option.none()

/** The signal that aborts when the client cancels the message being sent. */
const waiting = new AsyncLocalStorage<AbortSignal>()

/** Aborts the request that the client has cancelled: over HTTP, a service has no other way to know what to stop. */
const fetchWhileWaiting: typeof fetch = (input, init) =>
  fetch(input, {
    ...init,
    signal: AbortSignal.any([init?.signal, waiting.getStore()].flatMap((signal) => signal ?? []))
  })

/** Forwards messages in both directions, until the input ends and every request is answered or cancelled. */
const handOn = async (
  input: Readable,
  stdio: StdioServerTransport,
  service: StreamableHTTPClientTransport
): Promise<void> => {
  const underWay = new Set<Promise<void>>()
  const requests = new Map<RequestId, AbortController>()
  const forward = async (message: JSONRPCMessage): Promise<void> => {
    const cancelled = CancelledNotificationSchema.safeParse(message).data?.params.requestId
    if (cancelled !== undefined) {
      requests.get(cancelled)?.abort()
      return
    }
    const leaving = new AbortController()
    if (isJSONRPCRequest(message)) requests.set(message.id, leaving)
    try {
      await waiting.run(leaving.signal, () => service.send(message))
    } catch (error) {
      if (leaving.signal.aborted) return
      const failure = failureOf(message, error)
      if (Option.isSome(failure)) await stdio.send(failure.value)
      else console.error(explain(error))
    } finally {
      if (isJSONRPCRequest(message) && requests.get(message.id) === leaving) requests.delete(message.id)
    }
  }
  stdio.onmessage = (message) => {
    const forwarded = forward(message).finally(() => underWay.delete(forwarded))
    underWay.add(forwarded)
  }
  stdio.onerror = (error) => console.error(explain(error))
  service.onmessage = (message) => {
    const initialized = isJSONRPCResultResponse(message) ? InitializeResultSchema.safeParse(message.result) : undefined
    // Later requests send the agreed version in a header
    if (initialized?.success === true) service.setProtocolVersion(initialized.data.protocolVersion)
    if (waiting.getStore()?.aborted !== true) void stdio.send(message)
  }
  const ended = new Promise<void>((resolve) => {
    input.once("end", resolve).once("close", resolve)
  })
  await service.start()
  await stdio.start()
  await ended
  await Promise.all(underWay)
}

/** Runs until the client's input ends. Refusals and lost connections become answers to its requests. */
export const bridge = Effect.fnUntraced(function* ({ input, key, output, tools, url }: BridgeOptions) {
  const endpoint = new URL("mcp", url.href.endsWith("/") ? url : `${url.href}/`)
  if (tools !== undefined) endpoint.searchParams.set("tools", tools.join(","))
  const stdio = new StdioServerTransport(input, output)
  const service = new StreamableHTTPClientTransport(endpoint, {
    requestInit: { headers: { "x-api-key": Redacted.value(key) } },
    fetch: fetchWhileWaiting
  })
  yield* Effect.addFinalizer(() => Effect.promise(() => Promise.all([service.close(), stdio.close()])))
  yield* Effect.tryPromise({
    try: () => handOn(input, stdio, service),
    catch: (cause) => new CommandFailed({ message: "The tool server stopped.", cause })
  })
}, Effect.scoped)
