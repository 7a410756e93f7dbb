import { SqlClient, type SqlError } from "@effect/sql"
import { Effect, Either } from "effect"
import { type EnvelopeInput, makeEnvelope } from "../events/Envelope.ts"
import { Accounts } from "../payments/Accounts.ts"
import { type AccountStatus, accountStatus } from "../payments/account/AccountStatus.ts"
import { Provider } from "../payments/Provider.ts"
import { ServiceUnavailable } from "../platform/errors/Errors.ts"
import { makeFairSemaphore } from "../platform/kit/Concurrency.ts"
import type { Environment } from "../platform/kit/Environment.ts"
import type { Tenant } from "../platform/kit/Tenant.ts"
import { transaction } from "../platform/storage/Database.ts"
import { makeAccountStatusRepo, type StatusComparison } from "./AccountStatusRepo.ts"
import type { InboundContext } from "./ContextStatement.ts"
import { classify, type Decision, decisionOf, type EnrichmentFailure, malformedDecision, nothing } from "./Decision.ts"
import { makeInboundRepo } from "./InboundRepo.ts"
import { type NewReceipt, reportOf, type StoredReport } from "./ReceiptStatement.ts"
import type { Notification } from "./ThinNotification.ts"

export type ReceiptBase = Omit<NewReceipt, keyof Decision>

type Insert<A extends { readonly stored: boolean }, E> = (decision: Decision) => Effect.Effect<A, E>

interface Reading<A extends { readonly stored: boolean }, E> {
  readonly insert: Insert<A, E>
  readonly notification: Notification
  readonly tenant: Tenant
  /** The reading's number: see `AccountStatusRepo`. */
  readonly reading: string
}

/**
 * The date of a status change's event, in Unix seconds. The event's id derives from the notification whose reading
 * found the change. A snapshot and a thin notification of one change have different ids, and the event comes from
 * whichever is read first; if they shared one id, a further change found by the second reading would have no id for its
 * event.
 *
 * The date is that notification's, but never before the account's last event: a late notification can find a status
 * newer than all that was reported, and consumers order by `created_at`.
 */
const toldAtOf = ({ created }: Notification, { lastToldAt }: StatusComparison): number =>
  Math.max(created, lastToldAt ?? 0)

/** One per account: further ones would only wait for its lock, each holding a connection. */
const storedAtOnce = 2

const tooMany = () => new ServiceUnavailable({ cause: "Too many readings of accounts wait to be stored" })

const makeParts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const provider = yield* Provider
  const accounts = yield* Accounts
  const receipts = yield* makeInboundRepo(null)
  const statuses = yield* makeAccountStatusRepo
  const takePermit = yield* makeFairSemaphore({
    concurrency: storedAtOnce,
    share: 1,
    // After that, the provider has to send the notification again
    timeout: "5 seconds",
    onShareTaken: tooMany,
    onAllTaken: tooMany
  })
  const insert =
    (base: ReceiptBase): Insert<StoredReport, SqlError.SqlError> =>
    (decision) =>
      Effect.map(receipts.insert({ ...base, ...decision }), reportOf(decision))
  const contextOf = (environment: Environment, { account, id }: Notification) =>
    account === null
      ? Effect.succeed(undefined)
      : receipts.findContext({ environment, providerEventId: id, accountId: account, sold: null })
  return { sql, provider, accounts, receipts, statuses, takePermit, insert, contextOf }
})

type Parts = Effect.Effect.Success<typeof makeParts>

/** Runs in a transaction, under the account's lock. A copy of a stored notification changes nothing. */
const makeStoreReading = ({ contextOf, provider, statuses }: Parts) =>
  Effect.fnUntraced(function* <A extends { readonly stored: boolean }, E>(
    { insert, notification, reading, tenant }: Reading<A, E>,
    status: AccountStatus
  ) {
    const { environment } = tenant
    const compared = yield* statuses.lockAndCompare(tenant, status, reading)
    // Endpoints may have been added or removed during the call to the provider
    const classified = classify(environment, notification, yield* contextOf(environment, notification))
    if (classified._tag === "NotForUs" || compared === undefined) {
      return yield* insert(classified._tag === "NotForUs" ? classified.decision : nothing("unlinked"))
    }
    const { context } = classified
    if (!compared.isLatest) {
      return yield* insert(nothing("ignored", context))
    }
    const of = { provider: provider.name, environment, providerEventId: notification.id }
    const toldAt = compared.isChanged ? toldAtOf(notification, compared) : null
    const report = yield* insert(
      toldAt === null ? nothing("ignored", context) : updated(context, { ...of, created: toldAt, data: status })
    )
    if (report.stored) {
      yield* statuses.store(tenant, status, reading, toldAt)
    }
    return report
  })

const makeRead = ({ accounts, provider, sql, takePermit }: Parts, storeReading: ReturnType<typeof makeStoreReading>) =>
  Effect.fnUntraced(function* <A extends { readonly stored: boolean }, E>(of: Reading<A, E>, context: InboundContext) {
    const { insert, notification, tenant } = of
    const account = yield* accounts.use(tenant, provider.retrieveAccount)
    const status = accountStatus(tenant.environment, account)
    if (Either.isLeft(status)) {
      return yield* insert(malformedDecision("account", status.left, context))
    }
    return status.right.account_id === notification.account
      ? yield* takePermit(`${tenant.environment} ${status.right.account_id}`).pipe(
          Effect.zipRight(transaction(sql)(storeReading(of, status.right))),
          Effect.scoped
        )
      : yield* insert(nothing("unlinked"))
  })

/**
 * Handles notifications about an account's status, snapshot or thin (contract 11.5). Whatever they say, the account is
 * read again, since their order is not guaranteed, and `account.updated` is created only if the status differs from the
 * last reported one.
 */
export const makeAccountReports = Effect.gen(function* () {
  const parts = yield* makeParts
  const storeReading = makeStoreReading(parts)
  const read = makeRead(parts, storeReading)

  return {
    /** Stores the decision with its receipt; nothing while the provider can't be reached. */
    receive: Effect.fn("AccountReports.receive")(function* (
      base: ReceiptBase,
      notification: Notification,
      context: InboundContext
    ): Effect.fn.Return<StoredReport, EnrichmentFailure | SqlError.SqlError> {
      const { environment } = base
      const tenant = { organizationId: context.organizationId, environment }
      const { known, reading } = yield* parts.statuses.begin(environment, notification.id)
      return known
        ? yield* parts.insert(base)(nothing("ignored", context))
        : yield* read({ insert: parts.insert(base), notification, tenant, reading }, context)
    }),

    /** Like `receive`, for a notification that already has a receipt but led to nothing then. */
    repeat: Effect.fn("AccountReports.repeat")(function* <A extends { readonly stored: boolean }, E>(
      insert: Insert<A, E>,
      notification: Notification,
      tenant: Tenant,
      context: InboundContext
    ): Effect.fn.Return<A, E | EnrichmentFailure | SqlError.SqlError> {
      const { reading } = yield* parts.statuses.begin(tenant.environment, notification.id)
      return yield* read({ insert, notification, tenant, reading }, context)
    })
  }
})

/** Creates `account.updated`; no filter applies to it, so only endpoints without filters get it. */
const updated = (
  context: InboundContext,
  input: Omit<EnvelopeInput<"account.updated">, "organizationId" | "type">
): Decision => {
  const envelope = makeEnvelope({ ...input, organizationId: context.organizationId, type: "account.updated" })
  return decisionOf([envelope], context)
}
