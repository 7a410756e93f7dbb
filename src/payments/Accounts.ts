import { SqlClient, type SqlError } from "@effect/sql"
import { Context, Data, Effect, Either, Layer, Option } from "effect"
import {
  type PermissionDenied,
  ProviderAccountNotConnected,
  ProviderPermissionDenied,
  ResourceNotFound,
  type ServiceUnavailable
} from "../platform/errors/Errors.ts"
import { makeAudit } from "../platform/kit/Audit.ts"
import type { Author, Tenant } from "../platform/kit/Tenant.ts"
import { orUnavailable, transaction, violates } from "../platform/storage/Database.ts"
import {
  type AccountRow,
  type LinkedAccount,
  type LinkedBy,
  makeAccountsRepo,
  type NewLink,
  type Reported
} from "./AccountsRepo.ts"
import { accountStatus } from "./account/AccountStatus.ts"
import { makePlatforms } from "./Platforms.ts"
import { Provider } from "./Provider.ts"
import type { ConnectedAccount, ProviderCall } from "./ProviderCall.ts"
import type { AccountAccessRevoked, AccountFailure, ProviderCallFailure } from "./ProviderErrors.ts"

export type { LinkedAccount }

/** The account can't be linked; nothing was changed. */
export class AccountTaken extends Data.TaggedError("AccountTaken")<{
  readonly reason: "another_organization" | "another_account"
  readonly message: string
  readonly cause?: unknown
}> {}

export interface Disconnected {
  readonly endsAtProvider: boolean
}

export interface LinkOptions<Refused> {
  /** Default: the operator. */
  readonly linkedBy?: LinkedBy
  /**
   * Runs in the linking transaction, after the provider has answered, which can take minutes. If it fails, nothing is
   * changed. Default: no check.
   */
  readonly mayStill?: Effect.Effect<void, Refused | SqlError.SqlError>
}

/** The author of links that the service creates at a local start. */
const localOperator: Author = { kind: "operator", id: "local" }

const parts = Effect.gen(function* () {
  const audit = yield* makeAudit
  return {
    sql: yield* SqlClient.SqlClient,
    repo: yield* makeAccountsRepo,
    provider: yield* Provider,
    platforms: yield* makePlatforms,
    record: (tenant: Tenant, author: Author, action: "linked" | "unlinked" | "disconnected", targetId: string) =>
      audit({ ...tenant, author, action: `account.${action}`, targetId })
  }
})

type Parts = Effect.Effect.Success<typeof parts>

const makeUse = ({ platforms, provider, record, repo, sql }: Parts): Accounts["Type"]["use"] => {
  const markDisconnected = Effect.fnUntraced(function* (tenant: Tenant, found: AccountRow) {
    const disconnected = yield* transaction(sql)(
      Effect.tap(repo.disconnect(tenant, found, false), (done) =>
        done ? record(tenant, { kind: "provider", id: provider.name }, "disconnected", found.accountId) : Effect.void
      )
    ).pipe(orUnavailable)
    if (disconnected) {
      yield* Effect.logWarning("The provider account was disconnected: its access was revoked").pipe(
        Effect.annotateLogs({ organizationId: tenant.organizationId, environment: tenant.environment })
      )
    }
  })

  const confirmRevoked = Effect.fnUntraced(function* (
    tenant: Tenant,
    found: AccountRow,
    { cause }: AccountAccessRevoked
  ) {
    const account = connectedTo(tenant, found)
    yield* platforms.requireOwnKey(account, cause)
    const isRevoked = yield* provider.retrieveAccount(account).pipe(
      Effect.as(false),
      Effect.catchTags({
        AccountAccessRevoked: () => Effect.succeed(true),
        ProviderOperationUnsupported: () => Effect.succeed(true)
      })
    )
    if (!isRevoked) {
      // The account can be read, so access was not revoked; only this operation is not allowed on it
      return yield* new ProviderPermissionDenied({ cause })
    }
    yield* markDisconnected(tenant, found)
    // Earlier calls of the operation may have succeeded: a repeat after the account is linked again resumes from there
    return yield* new ProviderAccountNotConnected({ settles: "open", cause })
  })

  return (tenant, call) =>
    Effect.flatMap(orUnavailable(repo.find(tenant)), (known) =>
      Option.isSome(known) && known.value.status === "connected"
        ? Effect.catchTag(call(connectedTo(tenant, known.value)), "AccountAccessRevoked", (revoked) =>
            confirmRevoked(tenant, known.value, revoked)
          )
        : new ProviderAccountNotConnected()
    )
}

const connectedTo = ({ environment }: Tenant, { accountId }: AccountRow): ConnectedAccount => ({
  environment,
  accountId
})

const takenByAnother = (cause: unknown) =>
  new AccountTaken({
    reason: "another_organization",
    message: "This account is linked to another organization already",
    cause
  })

const makeLink = ({ platforms, provider, record, repo, sql }: Parts): Accounts["Type"]["link"] => {
  /** In a transaction; of several links at once, the first is recorded and the others find it done. */
  const store = Effect.fnUntraced(function* (link: NewLink, author: Author) {
    const { accountId, tenant } = link
    yield* repo.lockOrganization(tenant)
    const before = Option.getOrUndefined(yield* repo.find(tenant, "for update"))
    const linked = yield* repo.link(link)
    if (Option.isNone(linked)) {
      return yield* new AccountTaken({
        reason: "another_account",
        message: "Another account is connected in this environment: unlink it first"
      })
    }
    if (before !== undefined && before.accountId !== accountId) {
      yield* record(tenant, author, "unlinked", before.accountId)
    }
    if (before?.status !== "connected") {
      yield* record(tenant, author, "linked", accountId)
    }
    return linked.value
  })

  /** Reads the status. It is numbered before the read, so a read that started before the link never counts after it. */
  const readStatus = Effect.fnUntraced(function* (account: ConnectedAccount) {
    const numbered = yield* orUnavailable(repo.nextReading)
    const status = yield* provider.retrieveAccount(account).pipe(
      Effect.map((read) => Either.getOrNull(accountStatus(account.environment, read))),
      Effect.catchTag("ProviderOperationUnsupported", () => Effect.succeed(null))
    )
    return { ...numbered, status } satisfies Reported
  })

  return Effect.fn("Accounts.link")(function* <Refused extends PermissionDenied = never>(
    tenant: Tenant,
    accountId: string,
    author: Author = localOperator,
    { linkedBy = "operator", mayStill = Effect.void }: LinkOptions<Refused> = {}
  ) {
    const account = { environment: tenant.environment, accountId }
    const reported = yield* Effect.tapErrorTag(readStatus(account), "AccountAccessRevoked", ({ cause }) =>
      platforms.requireOwnKey(account, cause, "passes")
    )
    const hadPayments = yield* provider
      .hasCharges(account)
      .pipe(Effect.catchTag("ProviderOperationUnsupported", () => Effect.succeed(true)))
    const platformId = yield* platforms.ofKey(tenant.environment)
    return yield* transaction(sql)(
      Effect.all([
        mayStill,
        Effect.transposeMapOption(platformId, (id) => platforms.record(tenant.environment, id))
      ]).pipe(Effect.zipRight(store({ tenant, accountId, hadPayments, reported, linkedBy }, author)))
    ).pipe(
      Effect.catchIf(
        (error) => error._tag === "SqlError" && violates(error, "provider_accounts_account"),
        takenByAnother
      ),
      orUnavailable
    )
  })
}

const makeDisconnect = ({ record, repo }: Parts): Accounts["Type"]["disconnect"] =>
  Effect.fn("Accounts.disconnect")(function* (tenant, accountId, author) {
    const known = Option.getOrUndefined(yield* repo.find(tenant, "for update"))
    if (known?.accountId !== accountId) {
      return yield* new ResourceNotFound({ message: "This account is not linked in this environment." })
    }
    if (known.status === "disconnected") {
      return { endsAtProvider: known.endsAtProvider }
    }
    const endsAtProvider = known.linkedBy === "oauth"
    yield* repo.disconnect(tenant, known, endsAtProvider)
    yield* record(tenant, author, "disconnected", accountId)
    return { endsAtProvider }
  }, orUnavailable)

const makeUnlink = ({ record, repo, sql }: Parts): Accounts["Type"]["unlink"] =>
  Effect.fn("Accounts.unlink")(function* (tenant, author) {
    return yield* transaction(sql)(
      Effect.tap(repo.unlink(tenant), (unlinked) =>
        Effect.transposeMapOption(unlinked, ({ accountId }) => record(tenant, author, "unlinked", accountId))
      )
    )
  }, orUnavailable)

const make = Effect.map(parts, (parts): Accounts["Type"] => ({
  use: makeUse(parts),
  link: makeLink(parts),
  disconnect: makeDisconnect(parts),
  accessEnded: Effect.fn("Accounts.accessEnded")(parts.repo.accessEnded, orUnavailable),
  unlink: makeUnlink(parts),
  show: Effect.fn("Accounts.show")(parts.repo.show, orUnavailable)
}))

/** Connected provider accounts: one per organization and environment (contract 1.5). */
export class Accounts extends Context.Tag("connected-payments/payments/Accounts")<
  Accounts,
  {
    /**
     * Runs a call on the tenant's connected account. If the provider reports revoked access, a second read of the
     * account must confirm it; then the account is marked disconnected until it is linked again. It stays connected if
     * it was linked again in the meantime, or if this process's key belongs, or may belong, to another platform.
     */
    readonly use: <A>(
      tenant: Tenant,
      call: (account: ConnectedAccount) => ProviderCall<A>
    ) => Effect.Effect<A, AccountFailure>
    /**
     * Links an account after reading it at the provider, and records whether it had payments before. This is the only
     * way to reconnect a disconnected account. The account replaces a disconnected one, never a connected one.
     *
     * If the account is already connected, its record is kept: a payment whose notification is still in flight counts
     * as the first, and a change of status is still reported. Linking itself reports no status; later ones are compared
     * with the one read here. How and when the account was linked is kept as well, but revocations from before this
     * link no longer count, whenever they are reported. Audited if it connects the account, once if several requests do
     * so at once. The organization must exist. The platform is recorded as well; fails with
     * `provider_permission_denied` if the key belongs to another platform than the connected accounts.
     */
    readonly link: <Refused extends PermissionDenied = never>(
      tenant: Tenant,
      accountId: string,
      author?: Author,
      options?: LinkOptions<Refused>
    ) => Effect.Effect<LinkedAccount, ProviderCallFailure | AccountTaken | ServiceUnavailable | Refused>
    /** In a transaction; idempotent, audited. Returns whether the owner's grant must still be ended. */
    readonly disconnect: (
      tenant: Tenant,
      accountId: string,
      author: Author
    ) => Effect.Effect<Disconnected, ResourceNotFound | ServiceUnavailable>
    readonly accessEnded: (tenant: Tenant, accountId: string) => Effect.Effect<void, ServiceUnavailable>
    /** Unlinks the account, so that both can be linked anew; nothing changes at the provider. Audited. */
    readonly unlink: (tenant: Tenant, author: Author) => Effect.Effect<Option.Option<LinkedAccount>, ServiceUnavailable>
    /** Returns the tenant's account as recorded, without calling the provider. */
    readonly show: (tenant: Tenant) => Effect.Effect<Option.Option<LinkedAccount>, ServiceUnavailable>
  }
>() {
  static readonly layer = Layer.effect(Accounts, make)
}
