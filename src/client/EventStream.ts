import { HttpClient, HttpClientRequest, type HttpClientResponse } from "@effect/platform"
import { Data, Duration, Effect, Option, Predicate, Redacted, Schema, Stream } from "effect"
import type { ClientOptions } from "./Client.ts"

/** The options of `eventStream`. */
export interface EventStreamOptions extends Omit<ClientOptions, "retry"> {
  /** Event types. Default: all. */
  readonly types?: ReadonlyArray<string>
  /** The `place` of an item of an earlier stream, to resume after it. Default: start now. */
  readonly after?: string
}

/** An item of the stream: an event, or a change of the connection. */
export type EventStreamItem =
  /** The stream is connected: at first, and after each break. */
  | {
      readonly _tag: "Connected"
      /** Whether the place to resume at was more than 24 hours back, so that older events are missing. */
      readonly lookBackExceeded: boolean
      /** The time from which it sends events. */
      readonly from: Date
    }
  | {
      readonly _tag: "Event"
      readonly id: string
      readonly type: string
      /** The envelope as it is sent to endpoints: the exact text. */
      readonly text: string
      /** The stream's position after this event. */
      readonly place: string
    }
  /** The connection is lost, or the service can't answer now. The stream retries after `retryIn`. */
  | { readonly _tag: "Interrupted"; readonly reason: string; readonly retryIn: Duration.Duration }

/** The service refused the stream: repeating the request would not help. */
export class EventStreamRefused extends Data.TaggedError("EventStreamRefused")<{
  readonly status: number
  /** The API's code, such as `api_key_invalid`; empty if something else answered. */
  readonly code: string
  readonly message: string
}> {}

class Broken extends Data.TaggedError("Broken")<{ readonly reason: string; readonly retryAfter: Duration.Duration }> {}

/** How long the service may be silent: it sends a heartbeat every 10 seconds. */
const idleTimeout = Duration.seconds(30)

const longestWait = Duration.seconds(30)

/** The maximum length of one message, in UTF-16 units: events are far smaller. */
const maxMessage = 1024 * 1024

const maxKnown = 10_000

const Refusal = Schema.parseJson(Schema.Struct({ code: Schema.String, error: Schema.String }))
const Ready = Schema.parseJson(Schema.Struct({ from: Schema.Date, look_back_exceeded: Schema.Boolean }))
const EventHead = Schema.parseJson(Schema.Struct({ id: Schema.String, type: Schema.String }))

interface Message {
  readonly name: string
  readonly data: string
  /** The last id received, with this message or an earlier one. */
  readonly place: string | undefined
}

/** Parses server-sent events from chunks of text, as the service writes them: with line feeds only. */
class Messages {
  #rest = ""
  place: string | undefined

  constructor(place: string | undefined) {
    this.place = place
  }

  read(piece: string): ReadonlyArray<Message> {
    const blocks = (this.#rest + piece).split("\n\n")
    this.#rest = blocks.pop() ?? ""
    if (this.#rest.length > maxMessage) throw new Broken({ reason: "a message has no end", retryAfter: Duration.zero })
    return blocks.flatMap((block) => {
      let name = ""
      let data: string | undefined
      for (const line of block.split("\n")) {
        const [, field, value = ""] = /^([a-z]+): ?(.*)$/s.exec(line) ?? []
        if (field === "id") this.place = value
        else if (field === "event") name = value
        else if (field === "data") data = data === undefined ? value : `${data}\n${value}`
      }
      return data === undefined ? [] : [{ name, data, place: this.place }]
    })
  }
}

const urlOf = ({ baseUrl, organizationId, types = [] }: EventStreamOptions): URL => {
  const base = String(baseUrl).replace(/\/+$/, "")
  const url = new URL(`${base}/v2/organizations/${encodeURIComponent(organizationId)}/integrations/event-stream`)
  if (types.length > 0) url.searchParams.set("types", types.join(","))
  return url
}

const reasonOf = (error: unknown): string => {
  const cause = Predicate.hasProperty(error, "cause") ? error.cause : undefined
  const words = Predicate.hasProperty(error, "description") ? error.description : undefined
  return cause instanceof Error ? cause.message : Predicate.isString(words) ? words : String(error)
}

const broken = (error: unknown): Broken =>
  error instanceof Broken ? error : new Broken({ reason: reasonOf(error), retryAfter: Duration.zero })

/** The state of a stream: its position, tries and known event ids. */
class Reception {
  place: string | undefined
  tries = 0
  readonly #known = new Set<string>()

  constructor(place: string | undefined) {
    this.place = place
  }

  isNew(id: string): boolean {
    if (this.#known.has(id)) return false
    this.#known.add(id)
    if (this.#known.size > maxKnown) {
      const [oldest] = this.#known
      if (oldest !== undefined) this.#known.delete(oldest)
    }
    return true
  }

  /** The wait before the next try: an exponential backoff with jitter, at least `retryAfter`. */
  waitAfter({ retryAfter }: Broken): Duration.Duration {
    this.tries += 1
    const backoff = Math.min(500 * 2 ** (this.tries - 1), Duration.toMillis(longestWait)) * (0.5 + Math.random() / 2)
    return Duration.max(retryAfter, Duration.millis(Math.round(backoff)))
  }
}

const itemsOf = (reception: Reception, { data, name, place = "" }: Message): ReadonlyArray<EventStreamItem> => {
  if (name === "ready") {
    const ready = Schema.decodeOption(Ready)(data)
    if (Option.isNone(ready)) return []
    reception.tries = 0
    return [{ _tag: "Connected", lookBackExceeded: ready.value.look_back_exceeded, from: ready.value.from }]
  }
  const head = name === "" ? Schema.decodeOption(EventHead)(data) : Option.none()
  return Option.isSome(head) && reception.isNew(head.value.id)
    ? [{ _tag: "Event", id: head.value.id, type: head.value.type, text: data, place }]
    : []
}

/** The error of an answer that is not a stream: one to retry after, or a refusal. */
const errorOf = (response: HttpClientResponse.HttpClientResponse) =>
  Effect.map(
    Effect.orElseSucceed(response.text, () => ""),
    (text) => {
      const { headers, status } = response
      const refusal = Schema.decodeOption(Refusal)(text)
      const { code, error: message } = Option.getOrElse(refusal, () => ({ code: "", error: `HTTP ${status}` }))
      if (status !== 429 && status < 500) return new EventStreamRefused({ status, code, message })
      const seconds = Number(headers["retry-after"])
      return new Broken({ reason: message, retryAfter: Duration.seconds(seconds > 0 ? Math.min(seconds, 60) : 0) })
    }
  )

/** Requests the stream, to resume after `place`. */
const connect = (client: HttpClient.HttpClient, options: EventStreamOptions, place: string | undefined) =>
  client
    .execute(
      HttpClientRequest.get(urlOf(options), {
        headers: {
          accept: "text/event-stream",
          "x-api-key": Redacted.value(options.apiKey),
          ...(place === undefined ? {} : { "last-event-id": place })
        }
      })
    )
    .pipe(
      Effect.mapError(broken),
      Effect.filterOrElse(
        ({ status }) => status === 200,
        (response) => Effect.flip(errorOf(response))
      ),
      // Last, since an answer that refuses the stream may get stuck as well
      Effect.timeoutFail({
        duration: idleTimeout,
        onTimeout: () => new Broken({ reason: "the service does not answer", retryAfter: Duration.zero })
      })
    )

/** The items of a connection, until it breaks. */
const received = (response: HttpClientResponse.HttpClientResponse, reception: Reception) => {
  const messages = new Messages(reception.place)
  return response.stream.pipe(
    Stream.timeoutFail(() => new Broken({ reason: "the service is silent", retryAfter: Duration.zero }), idleTimeout),
    Stream.decodeText(),
    Stream.mapEffect((piece) =>
      Effect.try({
        try: () => messages.read(piece).flatMap((message) => itemsOf(reception, message)),
        catch: broken
      })
    ),
    Stream.tap(() =>
      Effect.sync(() => {
        reception.place = messages.place
      })
    ),
    Stream.mapError(broken),
    Stream.flattenIterables,
    Stream.concat(Stream.fail(new Broken({ reason: "the service has ended the stream", retryAfter: Duration.zero })))
  )
}

/**
 * Streams the events of the organization's sandbox as they arrive, whether or not an endpoint receives them: for a
 * developer's machine, not for production, whose keys are refused. Reconnects after a break and resumes where it
 * stopped: nothing of the last 24 hours is lost, and no event comes twice while the stream runs.
 *
 * Fails only if the service refuses it, for instance with `api_key_invalid`. Uses the `HttpClient` in its context,
 * whose own timeout for a body, if it has one, must be above 10 seconds.
 */
export const eventStream = (
  options: EventStreamOptions
): Stream.Stream<EventStreamItem, EventStreamRefused, HttpClient.HttpClient> =>
  Stream.unwrap(
    Effect.map(HttpClient.HttpClient, (client) => {
      const reception = new Reception(options.after)
      return Stream.suspend(() =>
        Stream.unwrapScoped(
          Effect.map(connect(client, options, reception.place), (response) => received(response, reception))
        )
      ).pipe(
        Stream.catchTag("Broken", (error) => {
          const retryIn = reception.waitAfter(error)
          return Stream.concat(
            Stream.make<[EventStreamItem]>({ _tag: "Interrupted", reason: error.reason, retryIn }),
            Stream.drain(Stream.fromEffect(Effect.sleep(retryIn)))
          )
        }),
        Stream.forever
      )
    })
  )
