import type { SqlError } from "@effect/sql"
import { Clock, Data, Effect, Exit } from "effect"
import { Accounts } from "../payments/Accounts.ts"
import type { ListedEvent } from "../payments/notifications/Port.ts"
import { Provider } from "../payments/Provider.ts"
import { type Environment, environments } from "../platform/kit/Environment.ts"
import type { Author, Tenant } from "../platform/kit/Tenant.ts"
import { Metrics } from "../platform/telemetry/Metrics.ts"
import { makeReceiptsRepo } from "./ReceiptsRepo.ts"
import type { makeReplay } from "./Replay.ts"

/** Compares the provider's lists of events with the receipts, and stores the events that left none. */

interface TimeRange {
  readonly since: Date
  readonly until?: Date
}

/** Hands over an account's events that left no receipt, newest first, page by page, as they would have been sent. */
export const makeLostEvents = Effect.gen(function* () {
  const provider = yield* Provider
  const accounts = yield* Accounts
  const records = yield* makeReceiptsRepo
  return <E>(
    tenant: Tenant,
    range: TimeRange,
    take: (lost: ReadonlyArray<ListedEvent>, page: ReadonlyArray<ListedEvent>) => Effect.Effect<boolean, E>
  ) =>
    Effect.suspend(() => {
      let taken: Exit.Exit<boolean, E | SqlError.SqlError> = Exit.succeed(true)
      const listed = accounts.use(tenant, (account) =>
        provider.listEvents(account, range, (page) => {
          const known = page.filter(({ type }) => provider.reader.concerns(type))
          const ids = known.map(({ id }) => id)
          return records.withoutReceipt(tenant.environment, ids).pipe(
            Effect.flatMap((missing) =>
              // Asked on the account's behalf, the provider may leave the account out
              take(
                known.filter(({ id }) => missing.has(id)).map((event) => ({ ...event, account: account.accountId })),
                page
              )
            ),
            Effect.exit,
            Effect.map((exit) => {
              taken = exit
              return Exit.isSuccess(exit) && exit.value
            })
          )
        })
      )
      return Effect.zipRight(
        listed,
        Effect.suspend(() => taken)
      )
    })
})

/**
 * How many events of a period are listed before it is divided, so that no more are held at once, the oldest are stored
 * first (an account's first payment is a milestone), and events stored before a failure are not compared again.
 */
const mostListed = 1000

/** The shortest period that can be listed: the provider dates events in whole seconds. */
const second = 1000

/** How long a round may take: less than the time after which another process takes over (`housekeepingLayer`). */
const roundMillis = 600_000

/** The time that an account may take in a round, however many accounts there are. */
const leastShareMillis = 60_000

/** The newest events are left alone: their notifications may still be under way. */
const graceMillis = 120_000

/** The pause between two calls of the background task, which thus makes 1 % of the calls that a platform may make. */
const pauses = { sandbox: "4 seconds", production: "1 second" } as const satisfies Record<Environment, string>

class RoundIsOver extends Data.TaggedError("RoundIsOver") {}

class ShareIsOver extends Data.TaggedError("ShareIsOver") {}

interface ToCompare extends Required<TimeRange> {
  /** If there are too many events, those before this time are left out. */
  readonly atLeastSince?: Date
}

export interface Progress {
  readonly stored: number
  /** Events that this version can't read, or whose account is no longer linked. */
  readonly refused: number
}

type Replays = Pick<Effect.Effect.Success<typeof makeReplay>, "takeIn">

/** A listed part of a period. */
interface Listed {
  /** Its events that left no receipt, newest first. */
  readonly lost: ReadonlyArray<ListedEvent>
  readonly total: number
  /** When the oldest listed event was created. */
  readonly begins: number
  /** Whether some lost events are left for the next listing of the same part. */
  readonly dropped: boolean
}

interface Pace<E> {
  /** Runs after each call to the provider. */
  readonly pace: Effect.Effect<void, E>
}

/** Lists a part of a period: to its end if it can't be divided, otherwise up to `mostListed` events. */
const makeListPart = Effect.map(makeLostEvents, (lostEvents) =>
  Effect.fnUntraced(function* <E>(
    tenant: Tenant,
    part: { readonly from: number; readonly until: number; readonly divisible: boolean },
    tried: ReadonlySet<string>,
    { pace }: Pace<E>
  ) {
    const lost: Array<ListedEvent> = []
    let [total, begins, dropped] = [0, part.until, false]
    yield* lostEvents(tenant, { since: new Date(part.from), until: new Date(part.until) }, (some, page) => {
      total += page.length
      begins = second * (page.at(-1)?.created ?? part.from / second)
      lost.push(...some.filter(({ id }) => !tried.has(id)))
      if (lost.length > mostListed) {
        // All of one second
        lost.splice(0, lost.length - mostListed)
        dropped = true
      }
      return Effect.as(pace, total < mostListed || !part.divisible)
    })
    return { lost, total, begins, dropped } satisfies Listed
  })
)

/** Stores a lost event, and returns how to count it: not at all if its notification has arrived meanwhile. */
const storeLost = ({ takeIn }: Replays, tenant: Tenant, event: ListedEvent, author: Author | null) =>
  takeIn(tenant, event, author).pipe(
    Effect.map(({ changed }) => (changed ? "stored" : null)),
    Effect.catchTag("ReplayRefused", ({ message }) =>
      Effect.logWarning(`An event that left no receipt can't be stored: ${message}`).pipe(
        Effect.annotateLogs({ ...tenant, "notification.id": event.id }),
        Effect.as("refused" as const)
      )
    )
  )

const makeReconcile = Effect.fnUntraced(function* (replays: Replays) {
  const listPart = yield* makeListPart
  const metrics = yield* Metrics
  // Exported from the start: an increase needs a previous value
  for (const environment of environments) {
    metrics?.count("connected_payments.notification.reconciled.count", [environment], 0)
  }

  /** Stores an account's events of a period that left no receipt, the oldest first. */
  return Effect.fnUntraced(function* <E, E2>(
    tenant: Tenant,
    range: ToCompare,
    author: Author | null,
    options: Pace<E> & {
      /** Runs when everything before a time is stored. */
      readonly upTo: (time: Date, progress: Progress) => Effect.Effect<unknown, E2>
    }
  ) {
    const end = range.until.getTime()
    const tried = new Set<string>()
    let from = second * Math.floor(range.since.getTime() / second)
    let step = Math.max(second, end - from)
    while (from < end) {
      const until = Math.min(from + step, end)
      const divisible = step > second
      const { begins, dropped, lost, total } = yield* listPart(tenant, { from, until, divisible }, tried, options)
      if (total >= mostListed && divisible) {
        step = second * Math.max(1, Math.floor(Math.min(until - begins, step / 2) / second))
        from = Math.max(from, second * Math.floor((range.atLeastSince?.getTime() ?? from) / second))
        continue
      }
      const progress = { stored: 0, refused: 0 }
      for (const event of lost.toReversed()) {
        tried.add(event.id)
        const taken = yield* storeLost(replays, tenant, event, author)
        if (taken !== null) progress[taken] += 1
      }
      if (!dropped) {
        from = until
        tried.clear()
        if (total < mostListed / 2) step *= 2
      }
      metrics?.count("connected_payments.notification.reconciled.count", [tenant.environment], progress.stored)
      yield* options.upTo(new Date(from), progress)
    }
  })
})

export const makeReconciliation = Effect.fnUntraced(function* (replays: Replays) {
  const records = yield* makeReceiptsRepo
  const reconcile = yield* makeReconcile(replays)

  /** One round of the background task: the accounts that were compared longest ago, as many as the time allows. */
  const round = Effect.fnUntraced(function* (environment: Environment) {
    const begun = yield* Clock.currentTimeMillis
    const until = new Date(begun - graceMillis)
    const accounts = yield* records.toReconcile(environment)
    const share = Math.max(leastShareMillis, roundMillis / accounts.length)
    let [stored, notAsked] = [0, 0]
    yield* Effect.forEach(
      accounts,
      Effect.fnUntraced(function* ({ atLeastSince, organizationId, since }) {
        const tenant = { organizationId, environment }
        const turn = yield* Clock.currentTimeMillis
        const pace = Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          if (now - begun > roundMillis) return yield* new RoundIsOver()
          if (now - turn > share) return yield* new ShareIsOver()
          yield* Effect.sleep(pauses[environment])
        })
        const upTo = (time: Date, progress: Progress) => {
          stored += progress.stored
          return records.reconciled(tenant, time)
        }
        yield* reconcile(tenant, { since, atLeastSince, until }, null, { pace, upTo }).pipe(
          // The next round begins with this account
          Effect.catchTag("ShareIsOver", () => Effect.void),
          Effect.catchAll((cause) => {
            if (cause._tag === "RoundIsOver" || cause._tag === "SqlError" || cause._tag === "ServiceUnavailable") {
              return Effect.fail(cause)
            }
            notAsked += 1
            return Effect.logDebug("An account's events can't be compared with the receipts", cause)
          })
        )
      }),
      { discard: true }
    ).pipe(Effect.catchTag("RoundIsOver", () => Effect.void))
    if (stored > 0) {
      yield* Effect.logWarning(`${stored} events of the provider had left no receipt, and were stored`)
    }
    if (notAsked > 0) {
      yield* Effect.logWarning(
        `The provider could not be asked for the events of ${notAsked} accounts: the next round does it`
      )
    }
    return stored
  })

  return { reconcile, round }
})
