import { SqlClient, type SqlError } from "@effect/sql"
import { Effect, Either } from "effect"
import { makeEnvelope } from "../events/Envelope.ts"
import type { Tenant } from "../kit/Tenant.ts"
import { type AccountStatus, accountStatus } from "../provider/AccountStatus.ts"
import { Accounts } from "../provider/Accounts.ts"
import { Provider } from "../provider/Provider.ts"
import type { Environment } from "../Settings.ts"
import { transaction } from "../storage/Database.ts"
import { makeAccountStatusRepo, type StatusComparison } from "./AccountStatusRepo.ts"
import type { CompletionFailure } from "./Completion.ts"
import { type Consequence, consequenceOf, dataOnly, judge, nothing } from "./Consequences.ts"
import { type InboundContext, makeReceiptsRepo, type NewReceipt } from "./ReceiptsRepo.ts"
import type { Notification } from "./ThinNotification.ts"

/** What a receipt says beside what the notification leads to. */
export type ReceiptBase = Omit<NewReceipt, keyof Consequence>

/** A stored notification: what became of it, or that it was known. */
export interface StoredReport {
  readonly outcome: NewReceipt["outcome"]
  readonly stored: boolean
}

/**
 * The event of a changed status. Its identity is that of the notification whose reading found the change. A snapshot and
 * a thin notification of one change are two notifications with an id each, and whichever reads first tells it; had they
 * one id in common, a further change that the second one's reading finds would have no id to be told under.
 *
 * It is dated as that notification is, but never before the account's last event: a late notification can find what is
 * newer than all that was told, and consumers order by `created_at`.
 */
const toldAtOf = ({ created }: Notification, { lastToldAt }: StatusComparison): number =>
  Math.max(created, lastToldAt ?? 0)

/**
 * Notifications about an account's status, snapshot or thin (contract, `account.updated` data): whatever they say, the
 * account is read anew, since their order is not guaranteed, and `account.updated` is made only where that differs from
 * what was told before.
 */
export const makeAccountReports = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const provider = yield* Provider
  const accounts = yield* Accounts
  const receipts = yield* makeReceiptsRepo
  const statuses = yield* makeAccountStatusRepo

  const insert = (base: ReceiptBase, consequence: Consequence): Effect.Effect<StoredReport, SqlError.SqlError> =>
    Effect.map(receipts.insert({ ...base, ...consequence }), (stored) => ({ outcome: consequence.outcome, stored }))

  /** In a transaction, under the account's lock. A copy of a notification that is stored changes nothing. */
  const storeReading = Effect.fnUntraced(function* (
    base: ReceiptBase,
    notification: Notification,
    tenant: Tenant,
    status: AccountStatus,
    reading: string
  ) {
    const { environment } = tenant
    const compared = yield* statuses.lockAndCompare(tenant, status, reading)
    // Endpoints may have come and gone while the provider was asked
    const judged = judge(environment, notification, yield* contextOf(environment, notification))
    if (judged._tag === "NoConcern" || compared === undefined) {
      return yield* insert(base, judged._tag === "NoConcern" ? judged.consequence : nothing("unlinked"))
    }
    const { context } = judged
    if (!compared.isLatest) {
      return yield* insert(base, nothing("ignored", context))
    }
    const toldAt = compared.isChanged ? toldAtOf(notification, compared) : null
    const report = yield* insert(
      base,
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

  /**
   * Reads the account of a notification and stores what that leads to with its receipt. The account is connected as far
   * as the context says. While the provider can't be asked nothing is stored.
   */
  return Effect.fn("AccountReports.receive")(function* (
    base: ReceiptBase,
    notification: Notification,
    context: InboundContext
  ): Effect.fn.Return<StoredReport, CompletionFailure | SqlError.SqlError> {
    const { environment } = base
    const tenant = { organizationId: context.organizationId, environment }
    const { known, reading } = yield* statuses.begin(environment, notification.id)
    if (known) {
      return yield* insert(base, nothing("ignored", context))
    }
    const account = yield* accounts.use(tenant, provider.retrieveAccount)
    const status = accountStatus(environment, account)
    if (Either.isLeft(status)) {
      yield* Effect.logError("The provider's account lacks what every account has", { missing: status.left })
      return yield* insert(base, nothing("malformed", context))
    }
    return status.right.account_id === notification.account
      ? yield* transaction(sql)(storeReading(base, notification, tenant, status.right, reading))
      : yield* insert(base, nothing("unlinked"))
  })
})

/** `account.updated`; every filter is not applicable to it, so that only endpoints without filters get it. */
const updated = (
  { environment, organizationId }: Tenant,
  { id }: Notification,
  status: AccountStatus,
  context: InboundContext,
  created: number
): Consequence =>
  consequenceOf(
    [
      makeEnvelope({ environment, organizationId, providerEventId: id, created, type: "account.updated", data: status })
    ],
    dataOnly,
    context
  )
