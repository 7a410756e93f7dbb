import type { SqlError } from "@effect/sql"
import { Deferred, Effect, type Scope } from "effect"
import type { OrganizationId } from "../../kit/Ids.ts"
import { type Micros, type makeStreamRepo, type UsedDay, usedSince } from "./StreamRepo.ts"

/**
 * What keeps the streams of a process going: one statement, a few times a second while there are streams, says whose
 * events have to be read, which keys are still good, and up to when the past is settled.
 *
 * **Events appear late**: an event bears the time at which its transaction began, and others see it when that commits. So
 * a reader that asks for what is newer than the last event it has seen misses what began before and committed after. A
 * reader of the stream therefore asks from the settled time on, and leaves out what it has already: every transaction
 * that it can't see yet began at that time or later, since it is among the open ones.
 */

/** How often the streams look for events. */
const interval = "250 millis"

/**
 * How much earlier than the oldest open transaction the past is taken to be settled: a session appears among the open
 * ones a moment after it has taken its time. In microseconds.
 */
export const margin = 5_000_000

/** How long an open transaction holds the past open, at most. In microseconds. */
export const longestTransaction = 600_000_000

/** What one look has found. */
export interface Poll {
  readonly number: number
  /** What a statement that begins now can't see was created at this time or later. */
  readonly settled: Micros
  /** The same for the statement of this look itself. */
  readonly settledBefore: Micros
  /**
   * Whether this look could see an event of the organization's from `settledBefore` on, or did not look for any, or not in
   * a day that it has found used.
   */
  readonly isActive: (organizationId: OrganizationId) => boolean
  /** The days before yesterday in which this look has found use. */
  readonly usedDays: ReadonlyArray<UsedDay>
  /** Whether the key was found revoked or expired. */
  readonly isRevoked: (keyId: string) => boolean
}

/** An open stream, as far as the looks ask for it. */
export interface Listener {
  readonly organizationId: OrganizationId
  /** Null if it was not opened with a key. */
  readonly keyId: string | null
}

/** When the past is settled: a little before the oldest open transaction. */
export const settledTime = ({ now, oldest }: { readonly now: Micros; readonly oldest: Micros }): Micros =>
  Math.max(Math.min(now, oldest) - margin, now - longestTransaction)

/** The looks of a process. */
export interface StreamPoller {
  /** Looks are taken while there is a listener: until its scope closes. */
  readonly join: (listener: Listener) => Effect.Effect<void, never, Scope.Scope>
  /** The latest look; null before the first. */
  readonly latest: () => Poll | null
  /** Waits for the next look, which does not come while the database can't be reached. */
  readonly next: Effect.Effect<void>
}

export const makeStreamPoller = (
  repo: Effect.Effect.Success<typeof makeStreamRepo>
): Effect.Effect<StreamPoller, never, Scope.Scope> =>
  Effect.gen(function* () {
    const listeners = new Set<Listener>()
    const anybody = yield* Effect.makeLatch(false)
    const fiberId = yield* Effect.fiberId
    let poll: Poll | null = null
    let next = yield* Deferred.make<void>()

    const look: Effect.Effect<void, SqlError.SqlError> = Effect.suspend(() => {
      const settledBefore = poll?.settled ?? 0
      const keys = new Map(
        [...listeners].flatMap(({ keyId, organizationId }) =>
          keyId === null ? [] : [[keyId, organizationId] as const]
        )
      )
      const organizations = new Set([...listeners].map(({ organizationId }) => organizationId))
      const days = usedSince(poll?.usedDays ?? [], settledBefore)
      const asked = { keys: [...keys], organizations: [...organizations], since: settledBefore, days }
      return Effect.map(repo.news(asked), (news) => {
        const isNewlyUsed = usedSince(news.usedDays, settledBefore).some((day) => !days.includes(day))
        const active = new Set(news.active)
        const goodKeys = new Set(news.goodKeys)
        poll = {
          number: (poll?.number ?? 0) + 1,
          settled: Math.max(settledBefore, settledTime(news)),
          settledBefore,
          isActive: (id) => isNewlyUsed || active.has(id) || !organizations.has(id),
          usedDays: news.usedDays,
          isRevoked: (id) => keys.has(id) && !goodKeys.has(id)
        }
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
