import { Effect, Redacted, Schema } from "effect"
import { CommandFailed } from "./Failure.ts"

/** A running service and a sandbox key of one of its organizations: all that a developer's commands need. */
export interface SandboxService {
  readonly url: URL
  readonly key: Redacted.Redacted
  readonly organizationId: string
}

/** How long the service may take to answer. */
const timeoutMillis = 15_000

/** The path that returns a key's organization and environment, the same on every service. */
const currentKeyPath = "identity/api-key"

const Refusal = Schema.parseJson(Schema.Struct({ error: Schema.String }))
const CurrentKey = Schema.Struct({ organizationId: Schema.String, environment: Schema.String })

const under = (url: URL, path: string): URL => new URL(path, url.href.endsWith("/") ? url : `${url.href}/`)

/** One request with the key; returns the decoded JSON. */
const ask = <A, I>(
  { key, url }: Pick<SandboxService, "url" | "key">,
  path: string,
  answer: Schema.Schema<A, I>,
  body?: unknown
): Effect.Effect<A, CommandFailed> =>
  Effect.gen(function* () {
    const { ok, status, text } = yield* Effect.tryPromise({
      try: async (signal) => {
        const response = await fetch(under(url, path), {
          method: body === undefined ? "GET" : "POST",
          redirect: "error",
          headers: {
            "x-api-key": Redacted.value(key),
            ...(body === undefined
              ? {}
              : { "content-type": "application/json", "idempotency-key": crypto.randomUUID() })
          },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
          signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMillis)])
        })
        return { ok: response.ok, status: response.status, text: await response.text() }
      },
      catch: (cause) => new CommandFailed({ message: `The service at ${url.origin} can't be reached.`, cause })
    })
    if (status === 404 && path === currentKeyPath) {
      return yield* new CommandFailed({
        message: `The service is not at ${url.href}: --url has to be the service's PUBLIC_URL.`
      })
    }
    if (!ok) {
      const refusal = Schema.decodeOption(Refusal)(text)
      return yield* new CommandFailed({
        message:
          refusal._tag === "Some"
            ? refusal.value.error
            : `The server at ${url.origin} answered ${status}: it is not the service, or not of this version.`
      })
    }
    return yield* Schema.decode(Schema.parseJson(answer))(text).pipe(
      Effect.mapError(
        (cause) => new CommandFailed({ message: `The server at ${url.origin} is not the service.`, cause })
      )
    )
  })

/** Whether a key looks like a production key. Only the service knows the prefixes of keys that it did not issue. */
const looksLive = (key: string): boolean => !key.startsWith("pk_test_") && key.includes("_live_")

/** The service at a URL, with the key's organization. A live key is refused, before it is sent anywhere. */
export const sandboxService = (url: URL, key: Redacted.Redacted): Effect.Effect<SandboxService, CommandFailed> =>
  Effect.gen(function* () {
    const refused = new CommandFailed({
      message: "This is a live key. The command works in the sandbox only: use a key that begins with pk_test_."
    })
    if (looksLive(Redacted.value(key))) return yield* refused
    const { environment, organizationId } = yield* ask({ url, key }, currentKeyPath, CurrentKey)
    return environment === "sandbox" ? { url, key, organizationId } : yield* refused
  })

const Triggered = Schema.Struct({
  type: Schema.String,
  origin: Schema.Literal("provider", "synthetic"),
  eventId: Schema.NullOr(Schema.String)
})

/** Triggers an event at the service. */
export const triggerAt = (service: SandboxService, type: string) =>
  ask(service, `v2/organizations/${service.organizationId}/integrations/event-triggers`, Triggered, { type })
