import { SqlClient } from "@effect/sql"
import { Effect, Option } from "effect"
import {
  AccountAlreadyConnected,
  AccountOnboardingUnavailable,
  IdempotencyRequestInProgress,
  ProviderUnavailable,
  type ServiceUnavailable
} from "../../platform/errors/Errors.ts"
import { makeAudit } from "../../platform/kit/Audit.ts"
import type { Author, Tenant } from "../../platform/kit/Tenant.ts"
import { orUnavailable, transaction } from "../../platform/storage/Database.ts"
import { Accounts } from "../Accounts.ts"
import { Provider } from "../Provider.ts"
import { keysOf } from "../ProviderCall.ts"
import { isRefusal, type ProviderFailure } from "../ProviderErrors.ts"
import { makeConnectingPolicy } from "./ConnectingPolicy.ts"
import { makeConnectingRepo, type Onboarding } from "./ConnectingRepo.ts"
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

const makeParts = Effect.fnUntraced(function* (
  publicUrl: string,
  endPending: (tenant: Tenant) => Effect.Effect<void, ProviderFailure | ServiceUnavailable>
) {
  const sql = yield* SqlClient.SqlClient
  const provider = yield* Provider
  const accounts = yield* Accounts
  const audit = yield* makeAudit
  const policy = yield* makeConnectingPolicy
  const repo = yield* makeConnectingRepo
  return { publicUrl, endPending, sql, provider, accounts, audit, policy, repo }
})

type Parts = Effect.Effect.Success<ReturnType<typeof makeParts>>

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

  return { link, ensureConnected }
}

const makeStart = (
  { accounts, audit, endPending, policy, provider, publicUrl }: Parts,
  { ensureConnected }: ReturnType<typeof makeEnsureConnected>
) => {
  const pagesOf = ({ environment }: Tenant) => ({
    returnUrl: `${publicUrl}${connectingPaths.returned}?environment=${environment}`,
    refreshUrl: `${publicUrl}${connectingPaths.refresh}?environment=${environment}`
  })

  const start = Effect.fn("AccountConnection.startOnboarding")(function* (tenant: Tenant, author: Author) {
    yield* policy.requireManagerNow(tenant, author)
    yield* policy.takeTurn(tenant)
    yield* endPending(tenant)
    const accountId = yield* ensureConnected(tenant, author)
    const link = yield* accounts.use(tenant, (account) => provider.createOnboardingUrl(account, pagesOf(tenant)))
    yield* audit({ ...tenant, author, action: "account.onboarding_started", targetId: accountId })
    return link
  }, orUnavailable)

  return start
}

/** @param endPending completes a pending disconnection at the provider before another account is connected here */
export const makeOnboarding = Effect.fnUntraced(function* (
  publicUrl: string,
  endPending: (tenant: Tenant) => Effect.Effect<void, ProviderFailure | ServiceUnavailable>
) {
  const parts = yield* makeParts(publicUrl, endPending)
  const createFor = makeCreateFor(parts)
  const ensureConnected = makeEnsureConnected(parts, createFor)
  const start = makeStart(parts, ensureConnected)

  return { start }
})
