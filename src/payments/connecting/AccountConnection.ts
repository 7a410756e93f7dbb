import { SqlClient } from "@effect/sql"
import { Context, Effect, Either, Layer, Option } from "effect"
import { refusal } from "../../platform/bounds/Refusals.ts"
import { ProviderUnavailable, ValidationFailed } from "../../platform/errors/Errors.ts"
import type { Author, Tenant } from "../../platform/kit/Tenant.ts"
import { orUnavailable, transaction } from "../../platform/storage/Database.ts"
import { Accounts } from "../Accounts.ts"
import type { LinkedAccount } from "../AccountsRepo.ts"
import { type AccountStatus, accountStatus } from "../account/AccountStatus.ts"
import { supports } from "../OwnProvider.ts"
import { Provider } from "../Provider.ts"
import { makeAuthorizations } from "./Authorizations.ts"
import { makeConnectingPolicy } from "./ConnectingPolicy.ts"
import { type Dependents, makeConnectingRepo } from "./ConnectingRepo.ts"
import { makeOnboarding } from "./Onboarding.ts"

export interface Connection {
  /** Null if none was ever linked. */
  readonly account: LinkedAccount | null
  /** Null if the account is not connected, has never been readable, or the provider has no status of accounts. */
  readonly status: AccountStatus | null
  /** False if the account could not be read at the provider: the status is then the last reported one. */
  readonly current: boolean
  readonly canUseExisting: boolean
  /** Whether disconnecting ends the platform's access at the provider, too. */
  readonly endsAccess: boolean
  /** What depends on the connected account; null if none is connected. */
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

const make = Effect.fnUntraced(function* (publicUrl: string) {
  const sql = yield* SqlClient.SqlClient
  const accounts = yield* Accounts
  const policy = yield* makeConnectingPolicy
  const repo = yield* makeConnectingRepo
  const readStatus = yield* makeReadStatus
  const authorizations = yield* makeAuthorizations(publicUrl)
  const onboarding = yield* makeOnboarding(publicUrl, authorizations.endPending)

  /** With its current status at the provider, or the last reported one if that can't be read. */
  const show = Effect.fn("AccountConnection.show")(function* (tenant: Tenant) {
    const canUseExisting = authorizations.isPossible(tenant.environment)
    const unread = (account: Option.Option<LinkedAccount>): Connection => ({
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
        ([read, dependents, isKept]): Connection => ({ ...unread(account), ...read, endsAccess: !isKept, dependents })
      ),
      // The provider just reported revoked access, and `accounts.use` recorded it
      Effect.catchTag("ProviderAccountNotConnected", () => Effect.map(accounts.show(tenant), unread))
    )
  }, orUnavailable)

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
  const disconnect = Effect.fn("AccountConnection.disconnect")(function* (
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

  return {
    show,
    /**
     * Starts or resumes the onboarding of the environment's account: the connected one, the former one if the platform
     * still has access to it, or a new one. The account is linked before its owner has finished. Owners and admins
     * only, within `connectingLimits`. Audited.
     */
    startOnboarding: onboarding.start,
    /** Must be finished in the same session within 10 minutes. Owners and admins only. */
    startAuthorization: authorizations.start,
    /** Even if the caller is interrupted; the state works once. Audited if it links the account. */
    finishAuthorization: authorizations.finish,
    disconnect,
    clean: orUnavailable(repo.clean)
  }
})

/** Self-service connection of an organization's provider account, by environment (contract 1.5). */
export class AccountConnection extends Context.Tag("connected-payments/payments/AccountConnection")<
  AccountConnection,
  Effect.Effect.Success<ReturnType<typeof make>>
>() {
  static readonly layer = (options: {
    /** The public URL of the service, without a trailing slash. */
    readonly publicUrl: string
  }) => Layer.scoped(AccountConnection, make(options.publicUrl))
}
