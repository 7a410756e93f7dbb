import type { SqlError } from "@effect/sql"
import { Clock, Data, Effect, Exit } from "effect"
import { Accounts } from "../payments/Accounts.ts"
import type { ListedEvent } from "../payments/notifications/Port.ts"
import { Provider } from "../payments/Provider.ts"
import { type Environment, environments } from "../platform/kit/Environment.ts"
import type { Author, Tenant } from "../platform/kit/Tenant.ts"
import { Metrics } from "../platform/telemetry/Metrics.ts"
import { makeReceiptRecordsRepo } from "./ReceiptRecordsRepo.ts"
import type { makeReplay } from "./Replay.ts"

/** Compares the provider's lists of events with the receipts, and stores what left none. */

interface TimeRange {
  readonly since: Date
  readonly until?: Date
}

/** Hands over an account's events that left no receipt, newest first, page by page, as they would have been sent. */
export const makeLostEvents = Effect.gen(function* () {
  const provider = yield* Provider
  const accounts = yield* Accounts
  const records = yield* makeReceiptRecordsRepo
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
 * How many events of a time are listed before it is divided, so that no more are held at once, the oldest can be stored
 * first (the first payment of an account is a milestone), and what is stored before a failure is not compared again.
 */
const mostListed = 1000

/** The shortest time that the provider can be asked for: it tells when an event was created in seconds. */
const second = 1000

/** How long a round may take: less than after which another process would take over (`housekeepingLayer`). */
const roundMillis = 600_000

/** How much of a round an account may take, however many there are and however many events it has. */
const leastShareMillis = 60_000

/** The newest events are left alone: their notifications may still be under way. */
const graceMillis = 120_000

/** The pause between two calls of the background task: 1 % of what the provider lets a platform call. */
const pauses = { sandbox: "4 seconds", production: "1 second" } as const satisfies Record<Environment, string>

class RoundIsOver extends Data.TaggedError("RoundIsOver") {}

class ShareIsOver extends Data.TaggedError("ShareIsOver") {}

interface ToCompare extends Required<TimeRange> {
  /** The part before this is left out if there are too many events for it. */
  readonly atLeastSince?: Date
}

export interface Progress {
  readonly stored: number
  /** Those that this version can't read, or whose account is no longer linked. */
  readonly refused: number
}

type Replays = Pick<Effect.Effect.Success<typeof makeReplay>, "takeIn">

const makeReconcile = Effect.fnUntraced(function* ({ takeIn }: Replays) {
  const lostEvents = yield* makeLostEvents
  const metrics = yield* Metrics
  // Exported from the start: an increase needs a previous value
  for (const environment of environments) {
    metrics?.count("connected_payments.notification.reconciled.count", [environment], 0)
  }

  /**
   * Stores an account's events of a time that left no receipt, the oldest first.
   *
   * @param pace runs after each call to the provider
   * @param upTo runs when everything before a time is stored
   */
  return Effect.fnUntraced(function* <E, E2>(
    tenant: Tenant,
    range: ToCompare,
    author: Author | null,
    {
      pace,
      upTo
    }: {
      readonly pace: Effect.Effect<void, E>
      readonly upTo: (time: Date, progress: Progress) => Effect.Effect<unknown, E2>
    }
  ) {
    const end = range.until.getTime()
    const tried = new Set<string>()
    let from = second * Math.floor(range.since.getTime() / second)
    let step = Math.max(second, end - from)
    while (from < end) {
      const until = Math.min(from + step, end)
      const held: Array<ListedEvent> = []
      let [listed, begins, dropped] = [0, until, false]
      yield* lostEvents(tenant, { since: new Date(from), until: new Date(until) }, (lost, page) => {
        listed += page.length
        begins = second * (page.at(-1)?.created ?? from / second)
        held.push(...lost.filter(({ id }) => !tried.has(id)))
        if (held.length > mostListed) {
          // All of one second
          held.splice(0, held.length - mostListed)
          dropped = true
        }
        return Effect.as(pace, listed < mostListed || step === second)
      })
      if (listed >= mostListed && step > second) {
        step = second * Math.max(1, Math.floor(Math.min(until - begins, step / 2) / second))
        from = Math.max(from, second * Math.floor((range.atLeastSince?.getTime() ?? from) / second))
        continue
      }
      const progress = { stored: 0, refused: 0 }
      for (const event of held.reverse()) {
        tried.add(event.id)
        const taken = yield* takeIn(tenant, event, author).pipe(
          Effect.map(({ changed }) => (changed ? "stored" : null)),
          Effect.catchTag("ReplayRefused", ({ message }) =>
            Effect.as(
              Effect.logWarning(`An event that left no receipt can't be stored: ${message}`).pipe(
                Effect.annotateLogs({ ...tenant, "notification.id": event.id })
              ),
              "refused" as const
            )
          )
        )
        if (taken !== null) progress[taken] += 1
      }
      if (!dropped) {
        from = until
        tried.clear()
        if (listed < mostListed / 2) step *= 2
      }
      metrics?.count("connected_payments.notification.reconciled.count", [tenant.environment], progress.stored)
      yield* upTo(new Date(from), progress)
    }
  })
})

export const makeReconciliation = Effect.fnUntraced(function* (replays: Replays) {
  const records = yield* makeReceiptRecordsRepo
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
          // The next round begins with it
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
