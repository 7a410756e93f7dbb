import { randomUUID } from "node:crypto"
import { FetchHttpClient } from "@effect/platform"
import { Console, Duration, Effect, Layer, Option, Redacted, Schema, Stream } from "effect"
import { type EventStreamItem, eventStream } from "../../../client/EventStream.ts"
import { refusedCode } from "../../../engine/attempts/Outcome.ts"
import { newSigningSecret, signatureHeaders, standardWebhooksSecretOf } from "../../../engine/attempts/Signing.ts"
import { EventType } from "../../../events/Catalog.ts"
import { deliveryIdHeaderName, refusedHeaderName } from "../../../events/DeliveryHeaders.ts"
import { hasErrorCode } from "../../../platform/errors/ErrorCode.ts"
import { version } from "../../../platform/settings/Version.ts"
import { ask } from "../Ask.ts"
import { type Command, command, flag, form, optional, process as running } from "../Command.ts"
import { CommandFailed } from "../Failure.ts"
import { PlainHttpUrl, variableOption } from "../Fields.ts"
import { fields, printable } from "../Output.ts"
import { readApiKey, readSecret, serviceOptions } from "../ServiceOptions.ts"

/** `listen` and `trigger`: the sandbox's events on a developer's machine, by URL and sandbox key. */

/** A running service and a sandbox key of one of its organizations: all that a developer's commands need. */
interface SandboxService {
  readonly url: URL
  readonly key: Redacted.Redacted
  readonly organizationId: string
}

const Refusal = Schema.parseJson(Schema.pluck(Schema.Struct({ error: Schema.String }), "error"))

const askService = <A, I>(
  { key, url }: Pick<SandboxService, "url" | "key">,
  path: string,
  {
    notFound,
    ...question
  }: {
    readonly answer: Schema.Schema<A, I>
    readonly body?: unknown
    /** The message if there is no such path. */
    readonly notFound?: string
  }
) =>
  ask({
    ...question,
    url: new URL(path, url.href.endsWith("/") ? url : `${url.href}/`),
    server: "service",
    headers: { "x-api-key": Redacted.value(key), "idempotency-key": crypto.randomUUID() },
    refused: (status, text) =>
      (status === 404 ? notFound : undefined) ??
      Option.getOrElse(
        Schema.decodeOption(Refusal)(text),
        () => `The server at ${url.origin} answered ${status}: it is not the service, or not of this version.`
      )
  })

/** Whether a key looks like a production key. Only the service knows the prefixes of keys that it did not issue. */
const looksLive = (key: string): boolean => !key.startsWith("pk_test_") && key.includes("_live_")

const CurrentKey = Schema.Struct({ organizationId: Schema.String, environment: Schema.String })

/** The service at a URL, with the key's organization. A live key is refused, before it is sent anywhere. */
const sandboxService = (url: URL, key: Redacted.Redacted): Effect.Effect<SandboxService, CommandFailed> =>
  Effect.gen(function* () {
    const refused = new CommandFailed({
      message: "This is a live key. The command works in the sandbox only: use a key that begins with pk_test_."
    })
    if (looksLive(Redacted.value(key))) return yield* refused
    const { environment, organizationId } = yield* askService({ url, key }, "identity/api-key", {
      answer: CurrentKey,
      notFound: `The service is not at ${url.href}: --url has to be the service's PUBLIC_URL.`
    })
    return environment === "sandbox" ? { url, key, organizationId } : yield* refused
  })

const Triggered = Schema.Struct({
  type: Schema.String,
  origin: Schema.Literal("provider", "synthetic"),
  eventId: Schema.NullOr(Schema.String)
})

const triggerAt = (service: SandboxService, type: string) =>
  askService(service, `v2/organizations/${service.organizationId}/integrations/event-triggers`, {
    answer: Triggered,
    body: { type }
  })

/** How long the local program may take to answer: as long as an endpoint. */
const timeoutMillis = 10_000

interface ForwardTo {
  readonly url: URL
  readonly secret: Redacted.Redacted
}

interface Forwarded {
  /** Null if there was no answer. */
  readonly status: number | null
  /** In words: the status with the kit's reason for a refusal, or why there is no status. */
  readonly answer: string
  readonly millis: number
}

const reasonOf = (error: unknown): string => {
  if (error instanceof DOMException && error.name === "TimeoutError") {
    return `no answer within ${timeoutMillis / 1000} seconds`
  }
  const cause = error instanceof Error ? error.cause : undefined
  if (hasErrorCode(cause, "ECONNREFUSED")) return "nothing listens there"
  return cause instanceof Error && cause.message !== "" ? cause.message : String(error)
}

/** The status, with the error code that a delivery's history would show for the kit's refusal. */
const answerOf = ({ headers, status }: Response): string => {
  const code = status >= 400 && status < 500 ? refusedCode(headers.get(refusedHeaderName)) : undefined
  return code === undefined ? String(status) : `${status} ${code}`
}

/** Posts an event like a delivery: the same body and headers, signed with another secret. Never fails. */
const forward = (
  { secret, url }: ForwardTo,
  event: { readonly id: string; readonly text: string }
): Effect.Effect<Forwarded> =>
  Effect.suspend(() => {
    const startedAt = performance.now()
    const headers = {
      "content-type": "application/json",
      "user-agent": `connected-payments/${version}`,
      [deliveryIdHeaderName]: randomUUID(),
      ...signatureHeaders({
        eventId: event.id,
        timestamp: Math.floor(Date.now() / 1000),
        body: event.text,
        secrets: [secret]
      })
    }
    const took = () => Math.round(performance.now() - startedAt)
    return Effect.tryPromise(async (signal) => {
      const response = await fetch(url, {
        method: "POST",
        body: event.text,
        headers,
        // Redirects are not followed, as for endpoints
        redirect: "manual",
        signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMillis)])
      })
      await response.body?.cancel()
      return { status: response.status, answer: answerOf(response) }
    }).pipe(
      Effect.map(({ answer, status }): Forwarded => ({ status, answer, millis: took() })),
      Effect.catchAll(({ error }) =>
        Effect.succeed<Forwarded>({ status: null, answer: reasonOf(error), millis: took() })
      )
    )
  })

const knownTypes = EventType.literals.join(", ")

const clockTime = (): string => new Date().toTimeString().slice(0, 8)

const handle = (to: ForwardTo, asJson: boolean, item: EventStreamItem): Effect.Effect<void> => {
  switch (item._tag) {
    case "Connected":
      return item.lookBackExceeded
        ? Console.error(
            `${clockTime()}  Connected again. EVENTS ARE MISSING: those before ${item.from.toISOString()} are too old to be streamed.`
          )
        : Console.error(`${clockTime()}  Connected: waiting for events.`)
    case "Interrupted":
      return Console.error(
        `${clockTime()}  Interrupted: ${printable(item.reason)}. Trying again in ${Math.ceil(Duration.toSeconds(item.retryIn))} s; nothing is lost.`
      )
    case "Event":
      return Effect.flatMap(forward(to, item), ({ answer, millis, status }) =>
        Console.log(
          asJson
            ? JSON.stringify({ id: item.id, type: item.type, status, answer, millis })
            : `${clockTime()}  ${printable(`${item.type}  ${item.id}  -> ${answer}`)} (${millis} ms)`
        )
      )
  }
}

export const listenCommands: ReadonlyArray<Command> = [
  running({
    name: "listen",
    summary: "Post the sandbox's events to a program on this machine, signed, as they occur.",
    example: "--forward-to http://localhost:3000/webhooks",
    input: Schema.Struct({
      forwardTo: form(
        PlainHttpUrl,
        "<url>",
        "Where to post each event: http://localhost:3000/webhooks.",
        "must be an http or https URL, without a user name or a password"
      ),
      events: form(
        Schema.split(",").pipe(Schema.compose(Schema.Array(EventType))),
        "<type,…>",
        "The event types to listen to, separated by commas: payment.succeeded,payment.refunded. Default: all.",
        `must be event types, separated by commas: ${knownTypes}`
      ).pipe(Schema.optionalWith({ exact: true, default: () => [] })),
      ...serviceOptions,
      secretEnv: optional(
        variableOption(
          "The environment variable that holds the signing secret, so that it stays the same. Default: a new secret each time."
        )
      ),
      json: flag("Print JSON for machines.")
    }),
    run: Effect.fnUntraced(function* ({ apiKeyEnv, events, forwardTo, json, secretEnv, url }) {
      const apiKey = yield* readApiKey(apiKeyEnv)
      const secret = secretEnv === undefined ? newSigningSecret() : yield* readSecret("signing secret", secretEnv)
      const { organizationId } = yield* sandboxService(url, apiKey)
      const shown = Redacted.value(secret)
      yield* Console.error(
        fields([
          ["Organization", `${organizationId}, sandbox`],
          ["Forwarding to", forwardTo.href],
          ["Signing secret", shown],
          ["For Standard Webhooks", standardWebhooksSecretOf(shown)],
          ["To stop", "Ctrl-C"]
        ])
      )
      const to = { url: forwardTo, secret }
      yield* eventStream({ baseUrl: url, organizationId, apiKey, types: events }).pipe(
        // One at a time, in stream order, so that a developer can read the output
        Stream.runForEach((item) => handle(to, json, item)),
        Effect.mapError(({ message }) => new CommandFailed({ message })),
        Effect.provide(FetchHttpClient.layer),
        Effect.onInterrupt(() => Console.error("Stopped."))
      )
    })
  }),
  command({
    name: "trigger",
    summary: "Make an event happen in the sandbox.",
    example: "payment.succeeded",
    argument: "type",
    input: Schema.Struct({
      type: form(
        EventType,
        "<type>",
        `The event type: ${knownTypes}.`,
        (given) => `There is no event type '${given}'. Available: ${knownTypes}.`
      ),
      ...serviceOptions
    }),
    services: Layer.empty,
    run: Effect.fnUntraced(function* ({ apiKeyEnv, type, url }) {
      const service = yield* sandboxService(url, yield* readApiKey(apiKeyEnv))
      const triggered = yield* triggerAt(service, type)
      return {
        json: triggered,
        text:
          triggered.origin === "provider"
            ? `The local provider triggers ${type}: the event follows like any other.`
            : `A synthetic ${type} is on its way to all listeners: ${triggered.eventId}`
      }
    })
  })
]
