import { SqlClient } from "@effect/sql"
import { Effect, Either, Option } from "effect"
import { refusal } from "../../platform/bounds/Refusals.ts"
import {
  AccountAlreadyConnected,
  AccountOnboardingUnavailable,
  IdempotencyRequestInProgress,
  ProviderUnavailable,
  type ServiceUnavailable,
  ValidationFailed
} from "../../platform/errors/Errors.ts"
import { makeAudit } from "../../platform/kit/Audit.ts"
import { serviceWith } from "../../platform/kit/Service.ts"
import type { Author, Tenant } from "../../platform/kit/Tenant.ts"
import { orUnavailable, transaction } from "../../platform/storage/Database.ts"
import { Accounts } from "../Accounts.ts"
import type { LinkedAccount } from "../AccountsRepo.ts"
import { type AccountStatus, accountStatus } from "../account/AccountStatus.ts"
import { supports } from "../OwnProvider.ts"
import { Provider } from "../Provider.ts"
import { keysOf } from "../ProviderCall.ts"
import { isRefusal, type ProviderFailure } from "../ProviderErrors.ts"
import { makeAuthorizations } from "./Authorizations.ts"
import { makeConnectingPolicy } from "./ConnectingPolicy.ts"
import { type Dependents, makeConnectingRepo, type Onboarding } from "./ConnectingRepo.ts"
import { connectingPaths } from "./Port.ts"

/**
 * Creates an account for an organization, and onboards it. Despite repeated or concurrent requests and crashes, a
 * tenant has at most one created account at a time: the start is stored before the provider is called, its generation
 * is part of the idempotency key there, and the answer is stored before it is used.
 */

const connectingAtOnce = () =>
  new IdempotencyRequestInProgress({
    message: "Another request is connecting an account for this organization; try again shortly."
  })

const makeParts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const provider = yield* Provider
  const accounts = yield* Accounts
  const audit = yield* makeAudit
  const policy = yield* makeConnectingPolicy
  const repo = yield* makeConnectingRepo
  return { sql, provider, accounts, audit, policy, repo }
})

type Parts = Effect.Effect.Success<typeof makeParts>

const makeCreateFor = ({ policy, provider, repo, sql }: Parts) => {
  /** Creates the account at the provider, or finds the one that an earlier attempt created. */
  const create = Effect.fnUntraced(function* (tenant: Tenant, begun: Onboarding) {
    const { environment } = tenant
    // No account exists yet
    const options = keysOf(tenant, "accounts.create", String(begun.generation))({ environment, accountId: "" })
    const account = { environment, marker: options.idempotencyKey }
    const find = provider.findCreatedAccount(account, begun.begunAt)
    const earlier = begun.outlivesKey ? yield* find : Option.none()
    if (Option.isSome(earlier)) {
      return earlier.value
    }
    const findOrGiveUp = () =>
      Effect.flatMap(
        find,
        Option.match({
          onSome: Effect.succeed,
          onNone: () => Effect.zipRight(repo.giveUp(tenant, begun), connectingAtOnce())
        })
      )
    return yield* provider.createAccount(account, options).pipe(
      Effect.catchTags({
        // Another version of the service called first, with other parameters
        IdempotencyKeyReused: findOrGiveUp,
        // The provider stores its failure under the key
        ProviderOutcomeUnknown: findOrGiveUp
      }),
      // The provider stores a refusal under its key, even after the cause is fixed
      Effect.tapError((failure) =>
        failure._tag !== "SqlError" && isRefusal(failure) ? repo.giveUp(tenant, begun) : Effect.void
      )
    )
  })

  const createFor = Effect.fnUntraced(function* (tenant: Tenant, seen: string | null, author: Author) {
    const begun = yield* transaction(sql)(
      Effect.zipRight(policy.requireManager(tenant, author), repo.begin(tenant, seen))
    )
    if (Option.isNone(begun)) {
      return yield* connectingAtOnce()
    }
    const accountId = yield* Effect.catchTag(
      create(tenant, begun.value),
      "AccountAccessRevoked",
      ({ cause }) => new ProviderUnavailable({ cause })
    )
    return (yield* repo.remember(tenant, begun.value, accountId)) ? accountId : yield* connectingAtOnce()
  })

  return createFor
}

const makeEnsureConnected = ({ accounts, policy, repo }: Parts, createFor: ReturnType<typeof makeCreateFor>) => {
  const link = (tenant: Tenant, accountId: string, author: Author) =>
    accounts.link(tenant, accountId, author, {
      linkedBy: "onboarding",
      mayStill: policy.requireManager(tenant, author)
    })

  /** Links an account that the organization had before; false if it can't be used any more. */
  const relink = (tenant: Tenant, accountId: string, author: Author) =>
    link(tenant, accountId, author).pipe(
      Effect.as(true),
      Effect.catchTags({
        AccountAccessRevoked: () => Effect.succeed(false),
        AccountTaken: ({ message, reason }) =>
          reason === "another_organization" ? Effect.succeed(false) : new AccountAlreadyConnected({ message })
      })
    )

  /** Ensures that an account is connected: the current one, a former one, or a new one. */
  const ensureConnected = Effect.fnUntraced(function* (tenant: Tenant, author: Author) {
    const known = Option.getOrUndefined(yield* accounts.show(tenant))
    if (known?.status === "connected") {
      return known.linkedBy === "oauth" ? yield* new AccountOnboardingUnavailable() : known.accountId
    }
    const created = Option.getOrUndefined(yield* repo.onboarding(tenant))?.accountId ?? null
    // An account connected by its owner's consent needs that consent again
    const former = known === undefined || known.linkedBy === "oauth" ? null : known.accountId
    for (const accountId of new Set([former, created])) {
      if (accountId !== null && (yield* relink(tenant, accountId, author))) {
        return accountId
      }
    }
    const accountId = yield* createFor(tenant, created, author)
    // Link at once, before its owner has finished: its notifications need a tenant from the first one on, and the
    // provider refuses charges until it has enabled them
    yield* link(tenant, accountId, author).pipe(
      Effect.catchTags({
        AccountTaken: ({ message }) => new AccountAlreadyConnected({ message }),
        AccountAccessRevoked: ({ cause }) => new ProviderUnavailable({ cause })
      })
    )
    return accountId
  })

  return ensureConnected
}

/** @param endPending completes a pending disconnection at the provider before another account is connected here */
const makeStartOnboarding = Effect.fnUntraced(function* (
  publicUrl: string,
  endPending: (tenant: Tenant) => Effect.Effect<void, ProviderFailure | ServiceUnavailable>
) {
  const parts = yield* makeParts
  const { accounts, audit, policy, provider } = parts
  const ensureConnected = makeEnsureConnected(parts, makeCreateFor(parts))

  const pagesOf = ({ environment }: Tenant) => ({
    returnUrl: `${publicUrl}${connectingPaths.returned}?environment=${environment}`,
    refreshUrl: `${publicUrl}${connectingPaths.refresh}?environment=${environment}`
  })

  return Effect.fn("AccountConnection.startOnboarding")(function* (tenant: Tenant, author: Author) {
    yield* policy.requireManagerNow(tenant, author)
    yield* policy.takeTurn(tenant)
    yield* endPending(tenant)
    const accountId = yield* ensureConnected(tenant, author)
    const link = yield* accounts.use(tenant, (account) => provider.createOnboardingUrl(account, pagesOf(tenant)))
    yield* audit({ ...tenant, author, action: "account.onboarding_started", targetId: accountId })
    return link
  }, orUnavailable)
})

export interface LinkState {
  /** Null if none was ever linked. */
  readonly account: LinkedAccount | null
  /** Null if the account is not connected, has never been readable, or the provider has no status of accounts. */
  readonly status: AccountStatus | null
  /** False if the account could not be read at the provider: the status is then the last reported one. */
  readonly current: boolean
  readonly canUseExisting: boolean
  /** Whether disconnecting ends the platform's access at the provider, too. */
  readonly endsAccess: boolean
  /** The objects that depend on the connected account; null if none is connected. */
  readonly dependents: Dependents | null
}

/** Reads the account's status at the provider; falls back to the last reported one. */
const makeReadStatus = Effect.gen(function* () {
  const provider = yield* Provider
  const accounts = yield* Accounts
  const repo = yield* makeConnectingRepo
  return Effect.fnUntraced(function* (tenant: Tenant, accountId: string) {
    if (!supports(provider, "retrieveAccount")) return { status: null, current: true }
    const read = yield* accounts.use(tenant, provider.retrieveAccount).pipe(
      Effect.flatMap((account) =>
        Either.mapLeft(
          accountStatus(tenant.environment, account),
          (malformed) => new ProviderUnavailable({ cause: malformed })
        )
      ),
      Effect.asSome,
      Effect.catchAll((error) =>
        error._tag === "ProviderAccountNotConnected" || error._tag === "ServiceUnavailable"
          ? Effect.fail(error)
          : Effect.as(Effect.logWarning("The account's status could not be read", error.cause), Option.none())
      )
    )
    return Option.isSome(read)
      ? { status: read.value, current: true }
      : { status: Option.getOrNull(yield* repo.reportedStatus(tenant, accountId)), current: false }
  })
})

type Authorizations = Effect.Effect.Success<ReturnType<typeof makeAuthorizations>>

const makeShow = Effect.fnUntraced(function* (authorizations: Authorizations) {
  const accounts = yield* Accounts
  const repo = yield* makeConnectingRepo
  const readStatus = yield* makeReadStatus

  /** With its current status at the provider, or the last reported one if that can't be read. */
  return Effect.fn("AccountConnection.show")(function* (tenant: Tenant) {
    const canUseExisting = authorizations.isPossible(tenant.environment)
    const unread = (account: Option.Option<LinkedAccount>): LinkState => ({
      account: Option.getOrNull(account),
      status: null,
      current: true,
      canUseExisting,
      endsAccess: false,
      dependents: null
    })
    const account = yield* accounts.show(tenant)
    if (Option.isNone(account) || account.value.status === "disconnected") {
      return unread(account)
    }
    const { accountId, linkedBy } = account.value
    return yield* Effect.all([
      readStatus(tenant, accountId),
      repo.dependents(tenant),
      linkedBy === "oauth" ? authorizations.isKept(tenant, accountId) : Effect.succeed(true)
    ]).pipe(
      Effect.map(
        ([read, dependents, isKept]): LinkState => ({ ...unread(account), ...read, endsAccess: !isKept, dependents })
      ),
      // The provider just reported revoked access, and `accounts.use` recorded it
      Effect.catchTag("ProviderAccountNotConnected", () => Effect.map(accounts.show(tenant), unread))
    )
  }, orUnavailable)
})

const makeDisconnect = Effect.fnUntraced(function* (authorizations: Authorizations) {
  const sql = yield* SqlClient.SqlClient
  const accounts = yield* Accounts
  const policy = yield* makeConnectingPolicy
  const repo = yield* makeConnectingRepo

  /** The account's id identifies the environment unless linked in both: the provider's test mode has the same ids. */
  const requireOneEnvironment = Effect.fnUntraced(function* ({ organizationId }: Tenant, accountId: string) {
    if (yield* repo.isInBoth(organizationId, accountId)) {
      return yield* new ValidationFailed(
        refusal(new Map([["environment", "must say which is meant: the account is linked in sandbox and production"]]))
      )
    }
  })

  /**
   * Disconnects the environment's account. Also ends the access at the provider if the account's owner granted it,
   * unless the account serves another organization, or the sandbox is disconnected while production stays connected.
   * If ending the access fails, the account is disconnected here, and a repeat or the next connection completes it.
   * Owners only. Audited.
   *
   * `isMeant` (default true) is false if the environment is only the selected one, which another tab may have
   * changed: then an account that is linked in both environments is refused.
   */
  return Effect.fn("AccountConnection.disconnect")(function* (
    tenant: Tenant,
    accountId: string,
    author: Author,
    { isMeant = true }: { readonly isMeant?: boolean } = {}
  ) {
    const { endsAtProvider } = yield* transaction(sql)(
      policy
        .requireOwner(tenant, author)
        .pipe(
          Effect.zipRight(isMeant ? Effect.void : requireOneEnvironment(tenant, accountId)),
          Effect.zipRight(accounts.disconnect(tenant, accountId, author))
        )
    )
    if (endsAtProvider) {
      yield* authorizations.end(tenant, accountId)
    }
    // Access that a sandbox disconnection left in place while production was connected
    const sandbox: Tenant = { ...tenant, environment: "sandbox" }
    if (tenant.environment === "production" && Option.contains(yield* repo.accessToEnd(sandbox), accountId)) {
      yield* authorizations.end(sandbox, accountId)
    }
  }, orUnavailable)
})

const make = Effect.fnUntraced(function* ({ publicUrl }: { readonly publicUrl: string }) {
  const repo = yield* makeConnectingRepo
  const authorizations = yield* makeAuthorizations(publicUrl)

  return {
    show: yield* makeShow(authorizations),
    /**
     * Starts or resumes the onboarding of the environment's account: the connected one, the former one if the platform
     * still has access to it, or a new one. The account is linked before its owner has finished. Owners and admins
     * only, within `connectingLimits`. Audited.
     */
    startOnboarding: yield* makeStartOnboarding(publicUrl, authorizations.endPending),
    /** Must be finished in the same session within 10 minutes. Owners and admins only. */
    startAuthorization: authorizations.start,
    /** Even if the caller is interrupted; the state works once. Audited if it links the account. */
    finishAuthorization: authorizations.finish,
    disconnect: yield* makeDisconnect(authorizations),
    clean: orUnavailable(repo.clean)
  }
})

/** Self-service connection of an organization's provider account, by environment (contract 1.5). */
export class AccountConnection extends serviceWith<AccountConnection>()(
  "connected-payments/payments/AccountConnection",
  make
) {}
