import type { SqlError } from "@effect/sql"
import { Deferred, Duration, Effect, Option, type Scope, Stream } from "effect"
import { EventCatalog } from "../../events/EventCatalog.ts"
import type { PrincipalShape } from "../../identity/Principal.ts"
import {
  RateLimitExceeded,
  ServiceUnavailable,
  TestEnvironmentRequired,
  ValidationFailed
} from "../../platform/errors/Errors.ts"
import { makeFairSemaphore } from "../../platform/kit/Concurrency.ts"
import type { OrganizationId } from "../../platform/kit/Ids.ts"
import { serviceWith } from "../../platform/kit/Service.ts"
import { orUnavailable } from "../../platform/storage/Database.ts"
import {
  lookBack,
  type Micros,
  makeEventStreamsRepo,
  type PollAnswer,
  type PollQuestion,
  type StreamedRow,
  type UsedDay,
  usedSince
} from "./EventStreamsRepo.ts"

/**
 * Polls the database for all streams of a process: while there are streams, one statement, a few times a second, tells
 * which organizations' events to read, which keys are still valid, and up to when the past is settled.
 *
 * **Events appear late**: an event's time is the beginning of its transaction, but it becomes visible at the commit. A
 * reader that asks for events newer than the last one it has seen would miss those that began before and committed
 * after. So a stream reads from the settled time on, leaving out events that it already has: every transaction that it
 * can't see yet is still open, and so began at that time or later.
 */

const interval = "250 millis"

/** In microseconds: a transaction's time is set shortly before the transaction appears among the open ones. */
const margin = 5_000_000

/** The longest time for which an open transaction delays the settled time, in microseconds. */
const longestTransaction = 600_000_000

interface Poll {
  readonly number: number
  /** The settled time: events that a statement beginning now can't see were created at this time or later. */
  readonly settled: Micros
  /** The settled time for this poll's own statement. */
  readonly settledBefore: Micros
  /** Whether the organization may have events from `settledBefore` on. */
  readonly isActive: (organizationId: OrganizationId) => boolean
  /** The days before yesterday that this poll found in use. */
  readonly usedDays: ReadonlyArray<UsedDay>
  readonly isRevoked: (keyId: string) => boolean
}

interface Listener {
  readonly organizationId: OrganizationId
  /** Null if it was not opened with a key. */
  readonly keyId: string | null
}

/** The settled time: a little before the oldest open transaction. */
const settledTime = ({ now, oldest }: { readonly now: Micros; readonly oldest: Micros }): Micros =>
  Math.max(Math.min(now, oldest) - margin, now - longestTransaction)

interface StreamPoller {
  /** Adds a listener until the scope closes. Polling runs while there is any. */
  readonly join: (listener: Listener) => Effect.Effect<void, never, Scope.Scope>
  /** The latest poll; null before the first. */
  readonly latest: () => Poll | null
  /** Waits for the next poll, which does not come while the database can't be reached. */
  readonly next: Effect.Effect<void>
}

/** The question of a poll for these listeners. */
const questionOf = (listeners: ReadonlySet<Listener>, previous: Poll | null): PollQuestion => {
  const all = [...listeners]
  const keys = all.flatMap(({ keyId, organizationId }) => (keyId === null ? [] : [[keyId, organizationId] as const]))
  const since = previous?.settled ?? 0
  return {
    keys: [...new Map(keys)],
    organizations: [...new Set(all.map(({ organizationId }) => organizationId))],
    since,
    days: usedSince(previous?.usedDays ?? [], since)
  }
}

const pollOf = (previous: Poll | null, asked: PollQuestion, answer: PollAnswer): Poll => {
  const isNewlyUsed = usedSince(answer.usedDays, asked.since).some((day) => !asked.days.includes(day))
  const organizations = new Set(asked.organizations)
  const active = new Set(answer.active)
  const keys = new Map(asked.keys)
  const goodKeys = new Set(answer.goodKeys)
  return {
    number: (previous?.number ?? 0) + 1,
    settled: Math.max(asked.since, settledTime(answer)),
    settledBefore: asked.since,
    isActive: (id) => isNewlyUsed || active.has(id) || !organizations.has(id),
    usedDays: answer.usedDays,
    isRevoked: (id) => keys.has(id) && !goodKeys.has(id)
  }
}

const makeStreamPoller = (
  repo: Effect.Effect.Success<typeof makeEventStreamsRepo>
): Effect.Effect<StreamPoller, never, Scope.Scope> =>
  Effect.gen(function* () {
    const listeners = new Set<Listener>()
    const anybody = yield* Effect.makeLatch(false)
    const fiberId = yield* Effect.fiberId
    let poll: Poll | null = null
    let next = yield* Deferred.make<void>()

    const look: Effect.Effect<void, SqlError.SqlError> = Effect.suspend(() => {
      const asked = questionOf(listeners, poll)
      return Effect.map(repo.poll(asked), (answer) => {
        poll = pollOf(poll, asked, answer)
        const heard = next
        next = Deferred.unsafeMake<void>(fiberId)
        Deferred.unsafeDone(heard, Effect.void)
      })
    })

    yield* anybody.await.pipe(
      Effect.zipRight(look),
      Effect.catchAll((error) => Effect.logDebug("The event streams can't look for events", error)),
      Effect.zipRight(Effect.sleep(interval)),
      Effect.withTracerEnabled(false),
      Effect.forever,
      Effect.forkScoped
    )

    return {
      join: (listener) =>
        Effect.acquireRelease(
          Effect.suspend(() => {
            listeners.add(listener)
            return anybody.open
          }),
          () =>
            Effect.suspend(() => {
              listeners.delete(listener)
              return listeners.size === 0 ? anybody.close : Effect.void
            })
        ),
      latest: () => poll,
      next: Effect.suspend(() => Deferred.await(next))
    }
  })

export const streamsPerOrganization = 5

/** The heartbeat interval of a stream without events: shorter than the idle timeouts that cut connections. */
const heartbeat = Duration.seconds(10)

/** How long a signed-in person's stream lasts; on resuming, the session and its rights are checked again. */
const sessionLifetime = Duration.minutes(1)

/** How many events are read at once: the most that a stream holds in memory, however slow its reader. */
const pageSize = 100

/**
 * The most ids that a stream remembers to leave out. Reached only if a transaction is open while very many events
 * arrive: that transaction's events may then be missed, rather than others be sent again and again.
 */
const maxRemembered = 5000

export interface EventStreamsOptions {
  /** The most concurrent streams in this process. */
  readonly eventStreamLimit: number
}

export interface OpenStream {
  /** Types of the catalog; empty for all. */
  readonly types: ReadonlyArray<string>
  /** The place to resume at; null to start now. */
  readonly after: Micros | null
  /** Whether the stream stays open once all events so far were sent. */
  readonly follow: boolean
  readonly isStopping: () => boolean
}

const makePlaces = (concurrency: number) =>
  makeFairSemaphore({
    concurrency,
    share: streamsPerOrganization,
    // A stream that was just closed may take this long to end
    timeout: "100 millis",
    onShareTaken: () =>
      new RateLimitExceeded({
        message: `The organization has ${streamsPerOrganization} event streams open here, the maximum; close one.`,
        retryAfter: "5 seconds"
      }),
    onAllTaken: () =>
      new ServiceUnavailable({
        message: "This process has its maximum of event streams; try again later.",
        retryAfter: "5 seconds",
        cause: "As many event streams as EVENT_STREAM_LIMIT allows"
      })
  })

/** A message of the stream. Its id is the place to resume at after this message. */
const messageOf = (place: Micros, data: string, name?: string): string =>
  `id: ${place}\n${name === undefined ? "" : `event: ${name}\n`}data: ${data}\n\n`

/** A heartbeat with the stream's current place. */
const heartbeatAt = (place: Micros): string => `: heartbeat\nid: ${place}\n\n`

const isoOf = (time: Micros): string => new Date(time / 1000).toISOString()

class Progress {
  /** All events before this time have been sent. */
  settled: Micros
  behind = true
  /** The number of the last poll that was processed. */
  seen = 0
  /** Events since `settled` that were sent or are not to be sent, by id. */
  readonly #known = new Map<string, Micros>()

  constructor(settled: Micros, known: ReadonlyArray<Pick<StreamedRow, "id" | "createdAt">>) {
    this.settled = settled
    this.#remember(known)
    this.#settle(settled)
  }

  get known(): ReadonlyArray<string> {
    return [...this.#known.keys()]
  }

  advance(rows: ReadonlyArray<StreamedRow>, { number, settled }: Poll): string {
    this.#remember(rows)
    this.behind = rows.length === pageSize
    this.seen = number
    const placeOf = (time: Micros) => Math.max(this.settled, Math.min(time, settled))
    const text = rows.map(({ createdAt, payload }) => messageOf(placeOf(createdAt), payload)).join("")
    this.#settle(this.behind ? placeOf(rows.at(-1)?.createdAt ?? 0) : Math.max(this.settled, settled))
    return text
  }

  /** Records a poll that found nothing for the organization. */
  skip({ number, settledBefore }: Poll): void {
    this.seen = number
    this.#settle(Math.max(this.settled, settledBefore))
  }

  #remember(rows: ReadonlyArray<Pick<StreamedRow, "id" | "createdAt">>): void {
    for (const { createdAt, id } of rows) this.#known.set(id, createdAt)
  }

  #settle(time: Micros): void {
    this.settled = time
    this.#forget()
    if (this.#known.size > maxRemembered) {
      const times = [...this.#known.values()].toSorted((a, b) => b - a)
      this.settled = times[maxRemembered / 2] ?? time
      this.#forget()
    }
  }

  #forget(): void {
    for (const [id, createdAt] of this.#known) {
      if (createdAt < this.settled) this.#known.delete(id)
    }
  }
}

const makeParts = Effect.fnUntraced(function* ({ eventStreamLimit }: EventStreamsOptions) {
  const repo = yield* makeEventStreamsRepo
  const poller = yield* makeStreamPoller(repo)
  const catalog = yield* EventCatalog
  const takePlace = yield* makePlaces(eventStreamLimit)
  return { repo, poller, catalog, takePlace }
})

type Parts = Effect.Effect.Success<ReturnType<typeof makeParts>>

const makeJudge = ({ catalog }: Parts) =>
  Effect.fnUntraced(function* ({ environment }: PrincipalShape, { types }: OpenStream) {
    if (environment !== "sandbox") {
      return yield* new TestEnvironmentRequired({ message: "Events are streamed in the sandbox only." })
    }
    const unknown = types.filter((type) => !catalog.some((entry) => entry.type === type))
    if (unknown.length > 0) {
      return yield* new ValidationFailed({
        message: `types in the query has event types that are not in the catalog: ${unknown.join(", ")}.`,
        fields: ["types"]
      })
    }
  })

/** Determines where a stream begins. Without a place, existing events are not sent. */
const makeBegin = ({ repo }: Parts) =>
  Effect.fnUntraced(function* (organizationId: OrganizationId, after: Micros | null) {
    const answer = yield* repo.poll({ keys: [], organizations: [], since: 0, days: [] })
    const { usedDays } = answer
    const settled = settledTime(answer)
    if (after === null) {
      const days = usedSince(usedDays, settled)
      const known = yield* repo.ids({ organizationId, from: settled, days, limit: maxRemembered + 1 })
      return { progress: new Progress(settled, known), exceeded: false, usedDays }
    }
    const earliest = answer.now - lookBack
    return {
      progress: new Progress(Math.min(Math.max(after, earliest), settled), []),
      exceeded: after < earliest,
      usedDays
    }
  }, orUnavailable)

/** A stream that was opened. */
interface Opened extends Listener {
  readonly options: OpenStream
  readonly progress: Progress
  /** The days before yesterday that were in use when it was opened. */
  readonly usedDays: ReadonlyArray<UsedDay>
  readonly openedAt: number
}

/** Whether a stream must end, even with events left to send. */
const isOver = ({ keyId, openedAt, options }: Opened, poll: Poll | null): boolean =>
  options.isStopping() ||
  (keyId === null ? performance.now() - openedAt > Duration.toMillis(sessionLifetime) : poll?.isRevoked(keyId) === true)

/** The text of a stream's next events; empty if there are none yet. */
const makeLook = ({ poller, repo }: Parts, { options, organizationId, progress, usedDays }: Opened) => {
  const read = (poll: Poll) =>
    repo
      .read({
        organizationId,
        from: progress.settled,
        // The latest poll may predate the stream
        days: usedSince([...usedDays, ...poll.usedDays], progress.settled),
        types: options.types,
        except: progress.known,
        limit: pageSize
      })
      .pipe(Effect.map((rows) => progress.advance(rows, poll)))

  return Effect.suspend(() => {
    const poll = poller.latest()
    // A settled time stays settled, so one poll serves many pages
    if (poll === null || (poll.number === progress.seen && !progress.behind)) return Effect.succeed("")
    if (!progress.behind && poll.number === progress.seen + 1 && !poll.isActive(organizationId)) {
      progress.skip(poll)
      return Effect.succeed("")
    }
    return Effect.catchAll(read(poll), (error) =>
      // Retried at the next poll
      Effect.as(Effect.logDebug("Events for a stream can't be read", error), "")
    )
  })
}

/** Waits for a stream's next events, or sends a heartbeat; fails with none at its end. */
const makeNext = (parts: Parts, stream: Opened): Effect.Effect<string, Option.Option<never>> => {
  const { poller } = parts
  const { options, progress } = stream
  const look = makeLook(parts, stream)
  let wroteAt = stream.openedAt
  return Effect.gen(function* () {
    for (;;) {
      if (isOver(stream, poller.latest())) return yield* Effect.fail(Option.none())
      const text = yield* look
      const silent = performance.now() - wroteAt
      const due = silent >= Duration.toMillis(heartbeat)
      if (text !== "" || due) {
        wroteAt = performance.now()
        return text === "" ? heartbeatAt(progress.settled) : text
      }
      if (!progress.behind && !options.follow) return yield* Effect.fail(Option.none())
      yield* Effect.timeoutOption(poller.next, Duration.millis(Duration.toMillis(heartbeat) - silent))
    }
  })
}

/**
 * Opens a stream, as the text of server-sent events. It occupies a place until the scope closes. It ends when the
 * process stops, when its key is revoked or expires, and after a minute if a signed-in person opened it.
 *
 * Each event is sent at least once. The stream is pulled, so a slow reader holds up only itself.
 */
const makeOpen = (parts: Parts) => {
  const judge = makeJudge(parts)
  const begin = makeBegin(parts)
  return Effect.fn("EventStreams.open")(function* (principal: PrincipalShape, options: OpenStream) {
    yield* judge(principal, options)
    if (options.isStopping()) {
      return yield* new ServiceUnavailable({ message: "This process is stopping.", retryAfter: "1 second" })
    }
    const { author, organizationId } = principal
    yield* parts.takePlace(organizationId)
    const keyId = author.kind === "api_key" ? author.id : null
    const { exceeded, progress, usedDays } = yield* begin(organizationId, options.after)
    yield* parts.poller.join({ organizationId, keyId })
    const stream = { organizationId, keyId, options, progress, usedDays, openedAt: performance.now() }
    const data = { resumed: options.after !== null, from: isoOf(progress.settled), look_back_exceeded: exceeded }
    const ready = messageOf(progress.settled, JSON.stringify(data), "ready")
    return Stream.concat(Stream.make(`retry: 1000\n${ready}`), Stream.repeatEffectOption(makeNext(parts, stream)))
  })
}

const make = (options: EventStreamsOptions) => Effect.map(makeParts(options), (parts) => ({ open: makeOpen(parts) }))

/** Streams of an organization's sandbox events (contract 15.1). */
export class EventStreams extends serviceWith<EventStreams>()("connected-payments/destinations/EventStreams", make) {}
