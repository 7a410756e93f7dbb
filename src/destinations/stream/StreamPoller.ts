import type { SqlError } from "@effect/sql"
import { Deferred, Effect, type Scope } from "effect"
import type { OrganizationId } from "../../platform/kit/Ids.ts"
import { type Micros, type makeStreamRepo, type UsedDay, usedSince } from "./StreamRepo.ts"

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

/** In microseconds: a session appears among the open ones a moment after it has taken its time. */
export const margin = 5_000_000

/** The longest time for which an open transaction delays the settled time, in microseconds. */
export const longestTransaction = 600_000_000

export interface Poll {
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

export interface Listener {
  readonly organizationId: OrganizationId
  /** Null if it was not opened with a key. */
  readonly keyId: string | null
}

/** The settled time: a little before the oldest open transaction. */
export const settledTime = ({ now, oldest }: { readonly now: Micros; readonly oldest: Micros }): Micros =>
  Math.max(Math.min(now, oldest) - margin, now - longestTransaction)

export interface StreamPoller {
  /** Adds a listener until the scope closes. Polling runs while there is any. */
  readonly join: (listener: Listener) => Effect.Effect<void, never, Scope.Scope>
  /** The latest poll; null before the first. */
  readonly latest: () => Poll | null
  /** Waits for the next poll, which does not come while the database can't be reached. */
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
