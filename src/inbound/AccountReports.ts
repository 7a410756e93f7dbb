import { SqlClient, type SqlError } from "@effect/sql"
import { Effect, Either } from "effect"
import { ServiceUnavailable } from "../errors/Errors.ts"
import { makeEnvelope } from "../events/Envelope.ts"
import type { Environment } from "../events/Environment.ts"
import { makeFairSemaphore } from "../kit/FairSemaphore.ts"
import type { Tenant } from "../kit/Tenant.ts"
import { Accounts } from "../provider/Accounts.ts"
import { type AccountStatus, accountStatus } from "../provider/account/AccountStatus.ts"
import { Provider } from "../provider/Provider.ts"
import { transaction } from "../storage/Database.ts"
import { makeAccountStatusRepo, type StatusComparison } from "./AccountStatusRepo.ts"
import type { InboundContext } from "./ContextStatement.ts"
import { classify, type Decision, decisionOf, nothing, unreadable } from "./Decision.ts"
import type { EnrichmentFailure } from "./Enrichment.ts"
import type { NewReceipt } from "./ReceiptStatement.ts"
import { makeReceiptsRepo } from "./ReceiptsRepo.ts"
import type { Notification } from "./ThinNotification.ts"
import type { Unreadable } from "./UnreadableReports.ts"

/** What a receipt says apart from what the notification leads to. */
export type ReceiptBase = Omit<NewReceipt, keyof Decision>

/** A stored notification: what became of it, or that it was already known. */
export interface StoredReport {
  readonly outcome: NewReceipt["outcome"]
  readonly stored: boolean
  /** Whether some of its deliveries wait in the queue for a worker. */
  readonly waits: boolean
  readonly unreadable: Unreadable | null
}

/** Stores what a notification leads to, in whatever transaction it is run in; returns whether it was stored. */
type Insert<A extends { readonly stored: boolean }, E> = (decision: Decision) => Effect.Effect<A, E>

/**
 * The event of a changed status. Its identity is that of the notification whose reading found the change. A snapshot
 * and a thin notification of one change are two notifications with an id each, and the event comes from whichever reads
 * first; if they shared one id, a further change that the second one's reading finds would have no id for its event.
 *
 * It has that notification's date, but never one before the account's last event: a late notification can find
 * something newer than all that was reported, and consumers order by `created_at`.
 */
const toldAtOf = ({ created }: Notification, { lastToldAt }: StatusComparison): number =>
  Math.max(created, lastToldAt ?? 0)

/**
 * How many readings are stored at once in a process, one of each account at a time: they wait for one another in any case,
 * since each locks its account, and would wait with a connection each.
 */
const storedAtOnce = 2

/** How long a reading waits for those before it; then the provider is to repeat the notification. */
const patience = "5 seconds"

const tooMany = () => new ServiceUnavailable({ cause: "Too many readings of accounts wait to be stored" })

/**
 * Notifications about an account's status, snapshot or thin (contract 11.5): whatever they say, the account is read
 * anew, since their order is not guaranteed, and `account.updated` is made only if the status differs from what was
 * reported before.
 */
export const makeAccountReports = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const provider = yield* Provider
  const accounts = yield* Accounts
  const receipts = yield* makeReceiptsRepo(null)
  const statuses = yield* makeAccountStatusRepo
  const takePermit = yield* makeFairSemaphore({
    concurrency: storedAtOnce,
    share: 1,
    patience,
    onShareTaken: tooMany,
    onAllTaken: tooMany
  })

  const insert =
    (base: ReceiptBase): Insert<StoredReport, SqlError.SqlError> =>
    (decision) =>
      Effect.map(receipts.insert({ ...base, ...decision }), ({ first, outcome, waits }) => ({
        outcome,
        stored: first,
        waits,
        unreadable: decision.unreadable
      }))

  /** In a transaction, under the account's lock. A copy of a stored notification changes nothing. */
  const storeReading = Effect.fnUntraced(function* <A extends { readonly stored: boolean }, E>(
    insert: Insert<A, E>,
    notification: Notification,
    tenant: Tenant,
    status: AccountStatus,
    reading: string
  ) {
    const { environment } = tenant
    const compared = yield* statuses.lockAndCompare(tenant, status, reading)
    // Endpoints may have been added or removed while the provider was asked
    const classified = classify(environment, notification, yield* contextOf(environment, notification))
    if (classified._tag === "NotForUs" || compared === undefined) {
      return yield* insert(classified._tag === "NotForUs" ? classified.decision : nothing("unlinked"))
    }
    const { context } = classified
    if (!compared.isLatest) {
      return yield* insert(nothing("ignored", context))
    }
    const toldAt = compared.isChanged ? toldAtOf(notification, compared) : null
    const report = yield* insert(
      toldAt === null ? nothing("ignored", context) : updated(tenant, notification, status, context, toldAt)
    )
    if (report.stored) {
      yield* statuses.store(tenant, status, reading, toldAt)
    }
    return report
  })

  const contextOf = (environment: Environment, { account, id }: Notification) =>
    account === null
      ? Effect.succeed(undefined)
      : receipts.findContext({ environment, providerEventId: id, accountId: account, sold: null })

  const read = Effect.fnUntraced(function* <A extends { readonly stored: boolean }, E>(
    insert: Insert<A, E>,
    notification: Notification,
    tenant: Tenant,
    context: InboundContext,
    reading: string
  ) {
    const account = yield* accounts.use(tenant, provider.retrieveAccount)
    const status = accountStatus(tenant.environment, account)
    if (Either.isLeft(status)) {
      return yield* insert(unreadable("account", status.left, context))
    }
    return status.right.account_id === notification.account
      ? yield* takePermit(`${tenant.environment} ${status.right.account_id}`).pipe(
          Effect.zipRight(transaction(sql)(storeReading(insert, notification, tenant, status.right, reading))),
          Effect.scoped
        )
      : yield* insert(nothing("unlinked"))
  })

  return {
    /**
     * Reads the account of a notification and stores what that leads to with its receipt. The account is connected, as
     * far as the context says. Nothing is stored while the provider can't be asked.
     */
    receive: Effect.fn("AccountReports.receive")(function* (
      base: ReceiptBase,
      notification: Notification,
      context: InboundContext
    ): Effect.fn.Return<StoredReport, EnrichmentFailure | SqlError.SqlError> {
      const { environment } = base
      const tenant = { organizationId: context.organizationId, environment }
      const { known, reading } = yield* statuses.begin(environment, notification.id)
      return known
        ? yield* insert(base)(nothing("ignored", context))
        : yield* read(insert(base), notification, tenant, context, reading)
    }),

    /** The same for a notification that has a receipt already, but of which nothing could be made then. */
    repeat: Effect.fn("AccountReports.repeat")(function* <A extends { readonly stored: boolean }, E>(
      insert: Insert<A, E>,
      notification: Notification,
      tenant: Tenant,
      context: InboundContext
    ): Effect.fn.Return<A, E | EnrichmentFailure | SqlError.SqlError> {
      const { reading } = yield* statuses.begin(tenant.environment, notification.id)
      return yield* read(insert, notification, tenant, context, reading)
    })
  }
})

/** Makes `account.updated`; no filter is applicable to it, so that only endpoints without filters get it. */
const updated = (
  { environment, organizationId }: Tenant,
  { id }: Notification,
  status: AccountStatus,
  context: InboundContext,
  created: number
): Decision =>
  decisionOf(
    [
      makeEnvelope({ environment, organizationId, providerEventId: id, created, type: "account.updated", data: status })
    ],
    context
  )
