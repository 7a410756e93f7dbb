import type { SqlError } from "@effect/sql"
import { Effect, Either, Fiber, FiberSet, Option, Redacted } from "effect"
import type { Membership, Session } from "../../identity/Principal.ts"
import { isToken, newToken, tokenHash } from "../../identity/sign-in/Sessions.ts"
import { AccountAlreadyConnected, AccountOauthUnavailable } from "../../platform/errors/Errors.ts"
import type { Environment } from "../../platform/kit/Environment.ts"
import type { Author, Tenant } from "../../platform/kit/Tenant.ts"
import { orUnavailable } from "../../platform/storage/Database.ts"
import { Accounts } from "../Accounts.ts"
import { makePlatforms } from "../Platforms.ts"
import { Provider } from "../Provider.ts"
import { makeConnectingPolicy } from "./ConnectingPolicy.ts"
import { makeConnectingRepo } from "./ConnectingRepo.ts"
import { type Authorization, connectingPaths } from "./Port.ts"

/**
 * Connects an existing account by its owner's consent at the provider (OAuth). The session that starts an authorization
 * must finish it, for the same organization and environment. So no other site can make a person link a foreign account,
 * and no person can be tricked into granting access to another organization.
 */

export type AuthorizationOutcome =
  | "connected"
  /** The account's owner declined. */
  | "denied"
  /** The state is unknown, already used, too old, or belongs to another session. */
  | "expired"
  /** The account belongs to another organization, or another account is connected. */
  | "taken"
  /** The wrong mode or scope, or the person may not connect accounts any more. */
  | "refused"
  /** The provider sent no consent, or does not accept the one that was sent. */
  | "unusable"
  /** The provider did not answer as expected. */
  | "failed"
  /** The service could not reach its database. */
  | "unavailable"

/** A finished authorization; the environment is null if it is unknown. */
export interface FinishedAuthorization {
  readonly outcome: AuthorizationOutcome
  readonly environment: Environment | null
}

export interface ReturnedAuthorization {
  readonly state: string | undefined
  readonly code: Redacted.Redacted | undefined
  readonly error: string | undefined
}

/** An upper bound; the provider's codes are shorter. */
const maxCodeLength = 512

/** How long a refusal waits for the access to be ended at the provider. */
const refusalTimeout = "5 seconds"

const stopTimeout = "5 seconds"

/** The format of the provider's error codes; anything else comes from elsewhere and is not logged. */
const errorWord = /^[a-z_]{1,64}$/

const makeParts = Effect.fnUntraced(function* (publicUrl: string) {
  const provider = yield* Provider
  const accounts = yield* Accounts
  const policy = yield* makeConnectingPolicy
  const repo = yield* makeConnectingRepo
  const platforms = yield* makePlatforms
  const underWay = yield* FiberSet.make<FinishedAuthorization>()
  yield* Effect.addFinalizer(() =>
    // Finalizers are uninterruptible by default, so the timeout would have no effect
    FiberSet.awaitEmpty(underWay).pipe(Effect.interruptible, Effect.timeoutOption(stopTimeout))
  )
  const urlOf = (environment: Environment, state: Redacted.Redacted) =>
    provider.authorizationUrl(environment, { state, redirectUrl: `${publicUrl}${connectingPaths.authorized}` })
  return { publicUrl, provider, accounts, policy, repo, platforms, underWay, urlOf }
})

type Parts = Effect.Effect.Success<ReturnType<typeof makeParts>>

const makeEnding = ({ accounts, platforms, provider, repo }: Parts) => {
  /** Whether a disconnection keeps the access: it is the platform's, so ending it would disconnect others. */
  const isKept = (tenant: Tenant, accountId: string): Effect.Effect<boolean, SqlError.SqlError> =>
    repo.isNeeded(tenant, accountId)

  /** If others need the access, it stays and must be ended later. */
  const end = Effect.fnUntraced(function* (tenant: Tenant, accountId: string) {
    if (yield* isKept(tenant, accountId)) {
      return
    }
    const account = { environment: tenant.environment, accountId }
    // To a key of another platform, every account looks revoked
    const hasEnded = (cause: unknown) => platforms.requireOwnKey(account, cause, "passes")
    yield* provider.endAuthorization(account).pipe(
      Effect.catchAll((failure) =>
        failure._tag === "AccountAccessRevoked"
          ? hasEnded(failure.cause)
          : Effect.matchEffect(provider.retrieveAccount(account), {
              onSuccess: () => Effect.fail(failure),
              onFailure: (reading) =>
                reading._tag === "AccountAccessRevoked" ? hasEnded(failure.cause) : Effect.fail(failure)
            })
      )
    )
    yield* accounts.accessEnded(tenant, accountId)
  })

  /** Completes a pending disconnection at the provider before another account is connected here. */
  const endPending = Effect.fnUntraced(function* (tenant: Tenant) {
    const accountId = yield* repo.accessToEnd(tenant)
    if (Option.isSome(accountId)) {
      yield* end(tenant, accountId.value)
    }
  }, orUnavailable)

  return { isKept, end, endPending }
}

const makeStart = ({ accounts, policy, repo, urlOf }: Parts, { endPending }: ReturnType<typeof makeEnding>) =>
  Effect.fn("AccountConnection.startAuthorization")(function* (tenant: Tenant, author: Author, sessionId: string) {
    yield* policy.requireManagerNow(tenant, author)
    const state = newToken()
    const url = urlOf(tenant.environment, state)
    if (Option.isNone(url)) {
      return yield* new AccountOauthUnavailable()
    }
    if (Option.exists(yield* accounts.show(tenant), ({ status }) => status === "connected")) {
      return yield* new AccountAlreadyConnected({
        message: "An account is connected in this environment already; disconnect it first."
      })
    }
    yield* policy.takeTurn(tenant)
    yield* endPending(tenant)
    const expiresAt = yield* repo.authorize(tenant, sessionId, tokenHash(state))
    return { url: url.value, expiresAt }
  }, orUnavailable)

/**
 * Ends the access to an account that was not linked, so that no unused consent remains. Access is the platform's, not
 * an organization's: if the account is in use, ending it would disconnect its users, so it stays. Failures are only
 * logged, so that the caller still gets the refusal.
 */
const makeGiveBack = ({ provider, repo }: Parts) =>
  Effect.fnUntraced(function* (tenant: Tenant, accountId: string) {
    const { environment, organizationId } = tenant
    yield* repo.isUsed(tenant, accountId).pipe(
      Effect.flatMap((used) =>
        used ? Effect.void : provider.endAuthorization({ environment, accountId }).pipe(Effect.asVoid)
      ),
      Effect.timeout(refusalTimeout),
      Effect.catchTag("AccountAccessRevoked", () => Effect.void),
      Effect.catchAll((failure) =>
        Effect.logWarning("Access that was granted to an account that is not connected could not be ended", failure)
      ),
      Effect.annotateLogs({ organizationId, environment, accountId })
    )
  })

const makeRedeem = (parts: Parts) => {
  const { accounts, policy, provider } = parts
  const giveBack = makeGiveBack(parts)

  /** Links the account whose owner has consented. */
  const accept = Effect.fnUntraced(function* (
    tenant: Tenant,
    author: Author,
    { accountId, environment, mayWrite }: Authorization
  ) {
    if (environment !== tenant.environment || !mayWrite) {
      return yield* Effect.as(giveBack(tenant, accountId), "refused" as const)
    }
    const mayStill = policy.requireManager(tenant, author)
    return yield* accounts.link(tenant, accountId, author, { linkedBy: "oauth", mayStill }).pipe(
      Effect.as("connected" as const),
      Effect.tapError((error) =>
        error._tag === "AccountTaken" && error.reason === "another_organization"
          ? Effect.void
          : giveBack(tenant, accountId)
      ),
      Effect.catchTags({
        AccountTaken: () => Effect.succeed("taken" as const),
        PermissionDenied: () => Effect.succeed("refused" as const)
      })
    )
  })

  const redeem = Effect.fnUntraced(function* (tenant: Tenant, author: Author, { code, error }: ReturnedAuthorization) {
    if (error === "access_denied") {
      return "denied" as const
    }
    if (error !== undefined || code === undefined || Redacted.value(code).length > maxCodeLength) {
      yield* Effect.logWarning("The provider returned no usable authorization").pipe(
        Effect.annotateLogs({ error: error !== undefined && errorWord.test(error) ? error : "none or unknown" })
      )
      return "unusable" as const
    }
    yield* policy.requireManagerNow(tenant, author)
    return yield* provider.redeemAuthorization(tenant.environment, code).pipe(
      Effect.flatMap((authorization) => accept(tenant, author, authorization)),
      Effect.catchTag("ProviderRequestRefused", () => Effect.succeed("unusable" as const))
    )
  })

  return redeem
}

const makeFinish = ({ repo, underWay }: Parts, redeem: ReturnType<typeof makeRedeem>) => {
  /** Uses up the state, which permits redeeming the code, and redeems it. */
  const complete = Effect.fnUntraced(function* (
    { organizationId }: Membership,
    { id, personId }: Session,
    state: Redacted.Redacted,
    returned: ReturnedAuthorization
  ): Effect.fn.Return<FinishedAuthorization> {
    const failed = (error: { readonly _tag: string; readonly cause?: unknown }) =>
      Effect.as(
        Effect.logWarning(`An authorized account could not be linked: ${error._tag}`, error.cause),
        error._tag === "ServiceUnavailable" ? ("unavailable" as const) : ("failed" as const)
      )
    const taken = yield* repo.takeAuthorization(organizationId, id, tokenHash(state)).pipe(orUnavailable, Effect.either)
    if (Either.isLeft(taken)) {
      return { outcome: yield* failed(taken.left), environment: null }
    }
    if (Option.isNone(taken.right)) {
      return { outcome: "expired", environment: null }
    }
    const environment = taken.right.value
    const outcome = yield* redeem({ organizationId, environment }, { kind: "person", id: personId }, returned).pipe(
      Effect.catchTag("PermissionDenied", () => Effect.succeed("refused" as const)),
      Effect.catchAll(failed),
      Effect.annotateLogs({ environment })
    )
    return { outcome, environment }
  })

  const finish = Effect.fn("AccountConnection.finishAuthorization")(function* (
    session: Session,
    returned: ReturnedAuthorization
  ): Effect.fn.Return<FinishedAuthorization> {
    const { membership } = session
    const state = returned.state ?? ""
    if (membership === null || !isToken(state)) {
      return { outcome: "expired", environment: null }
    }
    // In a separate fiber: leaving or reloading the page must not lose a consent that can't be redeemed twice
    const finishing = complete(membership, session, Redacted.make(state), returned).pipe(
      Effect.onInterrupt(() =>
        Effect.logWarning(
          "An authorization was not finished when the service stopped: its owner may have to consent again"
        )
      ),
      Effect.annotateLogs({ organizationId: membership.organizationId })
    )
    return yield* Effect.flatMap(FiberSet.run(underWay, Effect.interruptible(finishing)), Fiber.join)
  })

  return finish
}

export const makeAuthorizations = Effect.fnUntraced(function* (publicUrl: string) {
  const parts = yield* makeParts(publicUrl)
  const ending = makeEnding(parts)
  const start = makeStart(parts, ending)
  const redeem = makeRedeem(parts)
  const finish = makeFinish(parts, redeem)

  return {
    isPossible: (environment: Environment): boolean => Option.isSome(parts.urlOf(environment, Redacted.make(""))),
    start,
    finish,
    ...ending
  }
})
