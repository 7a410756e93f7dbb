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
  return <E>(tenant: Tenant, range: TimeRange, take: (lost: ReadonlyArray<ListedEvent>) => Effect.Effect<void, E>) =>
    Effect.suspend(() => {
      let taken: Exit.Exit<void, E | SqlError.SqlError> = Exit.void
      const listed = accounts.use(tenant, (account) =>
        provider.listEvents(account, range, (page) => {
          const known = page.filter(({ type }) => provider.reader.concerns(type))
          const ids = known.map(({ id }) => id)
          return records.withoutReceipt(tenant.environment, ids).pipe(
            Effect.flatMap((missing) =>
              // Asked on the account's behalf, the provider may leave the account out
              take(known.filter(({ id }) => missing.has(id)).map((event) => ({ ...event, account: account.accountId })))
            ),
            Effect.exit,
            Effect.map((exit) => {
              taken = exit
              return Exit.isSuccess(exit)
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

/** How much of a time is compared at once; what is stored before a failure is not compared again. */
const stepMillis = 3_600_000

/** How many lost events are held at once: the oldest, since the first payment of an account is a milestone. */
const mostHeld = 1000

/** How long a round may take: less than after which another process would take over (`housekeepingLayer`). */
const roundMillis = 600_000

/** The newest events are left alone: their notifications may still be under way. */
const graceMillis = 120_000

/** The pause between two calls of the background task: 1 % of what the provider lets a platform call. */
const pauses = { sandbox: "4 seconds", production: "1 second" } as const satisfies Record<Environment, string>

class RoundIsOver extends Data.TaggedError("RoundIsOver") {}

export interface Progress {
  readonly stored: number
  /** Those that this version can't read, or whose account is no longer linked. */
  readonly refused: number
}

type Replays = Effect.Effect.Success<typeof makeReplay>

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
    range: Required<TimeRange>,
    author: Author | null,
    {
      pace,
      upTo
    }: {
      readonly pace: Effect.Effect<void, E>
      readonly upTo: (time: Date, progress: Progress) => Effect.Effect<unknown, E2>
    }
  ) {
    const progress = { stored: 0, refused: 0 }
    const end = range.until.getTime()
    for (let from = range.since.getTime(); from < end; ) {
      const until = Math.min(from + stepMillis, end)
      const held: Array<ListedEvent> = []
      let isWhole = true
      yield* lostEvents(tenant, { since: new Date(from), until: new Date(until) }, (lost) => {
        held.push(...lost)
        if (held.length > mostHeld) {
          held.splice(0, held.length - mostHeld)
          isWhole = false
        }
        return pace
      })
      for (const event of held.reverse()) {
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
      // More events than are held may be of one second
      from = isWhole ? until : Math.max(from + 1000, 1000 * (held.at(-1)?.created ?? 0))
      metrics?.count("connected_payments.notification.reconciled.count", [tenant.environment], progress.stored)
      yield* upTo(new Date(from), { ...progress })
      Object.assign(progress, { stored: 0, refused: 0 })
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
    const pace = Effect.flatMap(Clock.currentTimeMillis, (now) =>
      now - begun > roundMillis ? Effect.fail(new RoundIsOver()) : Effect.sleep(pauses[environment])
    )
    let [stored, notAsked] = [0, 0]
    yield* Effect.forEach(
      yield* records.toReconcile(environment),
      ({ organizationId, since }) => {
        const tenant = { organizationId, environment }
        const upTo = (time: Date, progress: Progress) => {
          stored += progress.stored
          return records.reconciled(tenant, time)
        }
        return reconcile(tenant, { since, until }, null, { pace, upTo }).pipe(
          Effect.catchAll((cause) => {
            if (cause._tag === "RoundIsOver" || cause._tag === "SqlError" || cause._tag === "ServiceUnavailable") {
              return Effect.fail(cause)
            }
            notAsked += 1
            return Effect.logDebug("An account's events can't be compared with the receipts", cause)
          })
        )
      },
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
