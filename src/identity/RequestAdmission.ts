import { HttpServerRequest } from "@effect/platform"
import { Duration, Effect, Option } from "effect"
import type { ApiKeyInvalid, RateLimitExceeded, ServiceUnavailable, SessionInvalid } from "../platform/errors/Errors.ts"
import { BoundedMap, BoundedSemaphore, monotonicMillis } from "../platform/kit/Concurrency.ts"
import type { RateLimitPolicy, Taken } from "../platform/kit/RateLimit.ts"
import {
  type BucketView,
  enforce,
  RateLimits,
  rateLimitExceeded,
  refuseBy,
  type ScopedState,
  tokensAtMost,
  unknownBucket
} from "../platform/kit/RateLimit.ts"
import { serviceWith } from "../platform/kit/Service.ts"
import type { TrustedProxies } from "../platform/settings/Forms.ts"
import { bodyShareOf, messageOf } from "../server/Body.ts"
import { clientNetwork } from "../server/Connections.ts"
import {
  type CredentialLimits,
  type CredentialPolicies,
  credentialPolicies,
  perMinute,
  type TokensToTake
} from "./keys/CredentialLimitsStatements.ts"

/**
 * Admits requests by credential, within their rate limits, so that refused requests cost others nothing: the database's
 * last answer about a credential or a bucket is cached briefly. A valid credential costs at most one round trip,
 * including its limits.
 */

/**
 * Delays refusals that are known in advance, so that a sender that ignores them sends less and leaves the CPU to
 * others: each by 100 ms, and longer the more refusals of the same credential are waiting.
 */

const refusalPauseMillis = 100

/** Each further batch of this many waiting refusals adds 100 ms to a refusal's delay. */
const waitingPerRefusalPause = 8

/** The longest delay. A sender with very many connections is bounded by their number. */
const maxRefusalPauseMillis = 1000

/** Delays an effect, the longer the more of the same name are waiting. */
export const makeRefusalPause = (): (<A, E, R>(
  name: string,
  refusal: Effect.Effect<A, E, R>
) => Effect.Effect<A, E, R>) => {
  const waiting = new Map<string, number>()
  const enter = (name: string): Duration.Duration => {
    const others = waiting.get(name) ?? 0
    waiting.set(name, others + 1)
    return Duration.millis(
      Math.min(maxRefusalPauseMillis, refusalPauseMillis * (1 + Math.floor(others / waitingPerRefusalPause)))
    )
  }
  const leave = (name: string): void => {
    const rest = (waiting.get(name) ?? 1) - 1
    if (rest > 0) waiting.set(name, rest)
    else waiting.delete(name)
  }
  return (name, refusal) =>
    Effect.zipRight(
      Effect.acquireUseRelease(
        Effect.sync(() => enter(name)),
        Effect.sleep,
        () => Effect.sync(() => leave(name))
      ),
      refusal
    )
}

export interface RequestAdmissionOptions {
  /** Requests per minute and credential (contract 3.7). */
  readonly rateLimitPerMinute: number
  readonly failedAuthenticationsPerMinute: number
  readonly trustedProxies: TrustedProxies
}

/**
 * How long cached answers are used, in milliseconds. Only refusals and prefetched tokens are cached here: `ask` decides
 * for each request whether a credential is still valid.
 */
const trustedMillis = 1000

const maxRemembered = 10_000

/** How many credentials new to this process are looked up concurrently: they must not fill the pool. */
const lookUpsAtOnce = 2

/** How many of an organization's tokens a process takes at a time, so that its busy keys don't contend for one row. */
const organizationTokens = ({ limit }: RateLimitPolicy): number => Math.min(100, Math.max(1, Math.floor(limit / 100)))

/**
 * The most of a credential's own tokens that a process takes at a time, so that most requests of a busy key only look
 * it up. Tokens unused within `trustedMillis` are returned; with several processes, the limit may be exceeded or missed
 * by as many.
 */
const ownTokens = ({ limit }: RateLimitPolicy): number => Math.min(20, Math.max(1, Math.floor(limit / 30)))

/** Redemptions of mailed links per failure allowed to an address: most of them are valid. */
const redemptionsPerFailure = 4

/** A process's view of a bucket, and the tokens that it has prefetched. */
interface Share {
  readonly bucket: BucketView
  /** Prefetched tokens; usable within `trustedMillis`. */
  ahead: number
  aheadAt: number
  /** Whether a request is prefetching more. */
  asking: boolean
  /** How many of the credential's own tokens were last taken at a time. */
  taken: number
}

interface Credential {
  readonly own: Share
  readonly organization: Share | null
}

const unknownShare = (policy: RateLimitPolicy, now: number): Share => ({
  bucket: unknownBucket(policy, now),
  ahead: 0,
  aheadAt: now,
  asking: false,
  taken: 1
})

/** The prefetched tokens that are still usable. */
const aheadIn = (share: Share, now: number): number => (now - share.aheadAt < trustedMillis ? share.ahead : 0)

/** Uses a prefetched token. Returns whether there was one. */
const useAhead = (share: Share, now: number): boolean => {
  const there = aheadIn(share, now) >= 1
  if (there) share.ahead -= 1
  return there
}

const keepAnswer = (share: Share, { granted, tokens }: Taken, now: number): void => {
  share.ahead = aheadIn(share, now) + Math.max(0, granted - 1)
  share.aheadAt = now
  share.bucket.tokens = tokens
  share.bucket.at = now
}

/** Limits a prefetch to a twentieth of the tokens left (at least one), since another process may need them. */
const modestly = (share: Share, most: number): number =>
  Math.min(most, Math.max(1, Math.floor(share.bucket.tokens / 20)))

type Invalid = ApiKeyInvalid | SessionInvalid

type Refusal = RateLimitExceeded | ServiceUnavailable

const makeAddressLimits = (options: RequestAdmissionOptions, limits: RateLimits["Type"]) => {
  const failures = perMinute(options.failedAuthenticationsPerMinute)
  const redemptions = perMinute(redemptionsPerFailure * options.failedAuthenticationsPerMinute)
  const counted = (kind: string, policy: RateLimitPolicy, take: typeof limits.takeHere) =>
    clientNetwork(options.trustedProxies).pipe(
      Effect.flatMap((address) => take(`${kind}:${address}`, policy)),
      Effect.catchTag("BucketEmpty", ({ retryAfter }) => rateLimitExceeded("address", policy, retryAfter))
    )
  return {
    /** A failed authentication; failures never block a valid credential. */
    failure: counted("failed-authentication", failures, limits.take),
    /** A failed authentication decided without the database. */
    failureHere: counted("failed-authentication", failures, limits.takeHere),
    signInLink: counted("sign-in-links", failures, limits.take),
    redemption: counted("redemptions", redemptions, limits.take)
  }
}

/**
 * How many tokens of a share a request takes: none if it can use a prefetched one. Prefetched tokens that were not used
 * in time are returned, so that a few requests don't use up the limit.
 */
const takenOf = (
  share: Share | null | undefined,
  now: number,
  wanted: (share: Share) => number
): { readonly taken: number; readonly returned: number } => {
  if (share === null || share === undefined) return { taken: 1, returned: 0 }
  if (useAhead(share, now)) return { taken: 0, returned: 0 }
  if (share.asking) return { taken: 1, returned: 0 }
  const taken = wanted(share)
  const returned = share.ahead
  share.ahead = 0
  return { taken, returned }
}

const emptied = ({ organization, own }: Credential, now: number): ReadonlyArray<BucketView> =>
  [organization, own].flatMap((share) =>
    share !== null && share.bucket.tokens < 1 && aheadIn(share, now) < 1 ? [share.bucket] : []
  )

/** Lets one request at a time check whether an empty bucket has tokens again; if so, the others continue together. */
const inTurns = <A, E, R>(
  credential: Credential,
  effect: Effect.Effect<A, E, R>,
  now: number
): Effect.Effect<A, E | ServiceUnavailable, R> => {
  const views = emptied(credential, now)
  if (views.length === 0) {
    return effect
  }
  const first: Effect.Effect<Option.Option<A>, E | ServiceUnavailable, R> = Effect.flatMap(monotonicMillis, (then) =>
    emptied(credential, then).length === 0 ? Effect.succeedNone : Effect.asSome(effect)
  )
  return views
    .reduce((waiting, { line }) => line.turn(waiting), first)
    .pipe(Effect.flatMap(Option.match({ onNone: () => effect, onSome: Effect.succeed })))
}

const isUsedUp = (share: Share, policy: RateLimitPolicy, now: number): boolean =>
  aheadIn(share, now) < 1 &&
  share.bucket.tokens < 1 &&
  now - share.bucket.at < trustedMillis &&
  tokensAtMost(share.bucket, policy, now) < 1

/** This process's view of credentials' limits, without asking the database. */
class KnownLimits {
  readonly #policies: CredentialPolicies
  /** By the credential's hash. */
  readonly #credentials = new BoundedMap<Credential>(maxRemembered)
  /** The organizations' shares, by id. */
  readonly #organizations = new BoundedMap<Share>(maxRemembered)

  constructor(policies: CredentialPolicies) {
    this.#policies = policies
  }

  get(name: string): Credential | undefined {
    return this.#credentials.get(name)
  }

  delete(name: string): void {
    this.#credentials.delete(name)
  }

  #stateOf(scope: "credential" | "organization", share: Share, allowed: boolean, now: number): ScopedState {
    const policy = scope === "credential" ? this.#policies.own : this.#policies.organization
    const tokens = Math.min(policy.limit, tokensAtMost(share.bucket, policy, now) + aheadIn(share, now))
    return { scope, policy, state: { allowed, tokens } }
  }

  refusalOf(name: string, now: number): ScopedState | undefined {
    const credential = this.#credentials.get(name)
    if (credential === undefined) return undefined
    const { organization, own } = credential
    if (isUsedUp(own, this.#policies.own, now)) return this.#stateOf("credential", own, false, now)
    return organization !== null && isUsedUp(organization, this.#policies.organization, now)
      ? this.#stateOf("organization", organization, false, now)
      : undefined
  }

  #credentialOf(name: string, organizationId: string | null, now: number): Credential {
    const known = this.#credentials.get(name)
    const organization =
      organizationId === null
        ? null
        : this.#organizations.getOrSet(organizationId, () => unknownShare(this.#policies.organization, now))
    // A person may join or leave an organization during their session
    if (known !== undefined && known.organization === organization) {
      return known
    }
    const made = { own: known?.own ?? unknownShare(this.#policies.own, now), organization }
    this.#credentials.set(name, made)
    return made
  }

  /** A credential's own tokens: more than one only if the last ones were used up in time, and then twice as many. */
  #wantedOwn(share: Share, now: number): number {
    const isBusy = now - share.aheadAt < trustedMillis
    share.taken = isBusy ? modestly(share, Math.min(ownTokens(this.#policies.own), 2 * share.taken)) : 1
    return share.taken
  }

  tokensToTake(credential: Credential | undefined, now: number): TokensToTake {
    const own = takenOf(credential?.own, now, (share) => this.#wantedOwn(share, now))
    const organization = takenOf(credential?.organization, now, (share) =>
      modestly(share, organizationTokens(this.#policies.organization))
    )
    return {
      own: own.taken,
      returned: own.returned,
      organization: organization.taken,
      organizationReturned: organization.returned
    }
  }

  learn(name: string, answer: CredentialLimits, asked: TokensToTake, now: number): ScopedState {
    const { organization, own } = this.#credentialOf(name, answer.organizationId, now)
    if (answer.own !== null) keepAnswer(own, answer.own, now)
    const ownState = this.#stateOf("credential", own, asked.own === 0 || (answer.own?.granted ?? 0) >= 1, now)
    if (organization === null) {
      return ownState
    }
    if (answer.organization !== null) keepAnswer(organization, answer.organization, now)
    if (!ownState.state.allowed) {
      organization.ahead += asked.organization === 0 ? 1 : 0
      return ownState
    }
    const isAllowed = asked.organization === 0 || (answer.organization?.granted ?? 0) >= 1
    const shared = this.#stateOf("organization", organization, isAllowed, now)
    return isAllowed && shared.state.tokens >= ownState.state.tokens ? ownState : shared
  }
}

/**
 * Looks up a credential within its limits, and shows them in the response's headers.
 *
 * @param credential the credential's hash, as a name that is not secret
 * @param ask looks the credential up and takes these tokens, in one round trip
 * @param invalid the error while the credential is known to be invalid
 * @param exists whether the credential exists: looked up in batches, so that made-up ones delay no others
 */
type Admit = <A extends CredentialLimits, E extends Invalid, R>(
  credential: string,
  ask: (tokens: TokensToTake) => Effect.Effect<A, E | ServiceUnavailable, R>,
  invalid: () => E,
  exists: Effect.Effect<boolean, ServiceUnavailable>
) => Effect.Effect<A, E | Refusal, R | HttpServerRequest.HttpServerRequest>

/** Marks the shares that a request prefetches tokens of, so that concurrent requests don't prefetch any. */
const whilePrefetching = <A, E, R>(
  credential: Credential | undefined,
  asked: TokensToTake,
  ask: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => {
  const taking = [
    asked.own > 1 ? credential?.own : undefined,
    asked.organization > 1 ? credential?.organization : undefined
  ].flatMap((share) => share ?? [])
  for (const share of taking) share.asking = true
  return Effect.ensuring(
    ask,
    Effect.sync(() => {
      for (const share of taking) share.asking = false
    })
  )
}

const makeRefusals = (known: KnownLimits, addresses: ReturnType<typeof makeAddressLimits>) => {
  /** Until when a credential is known to be invalid, in monotonic milliseconds. */
  const unknown = new BoundedMap<number>(maxRemembered)

  /** Remembers an invalid credential, and counts it for the caller's address. */
  const refuse = Effect.fnUntraced(function* <E extends Invalid>(name: string, error: E | ServiceUnavailable) {
    if (error._tag !== "ServiceUnavailable") {
      known.delete(name)
      unknown.set(name, (yield* monotonicMillis) + trustedMillis)
      yield* addresses.failure
    }
    return yield* Effect.fail(error)
  })

  /** The cached refusal; undefined if the database must be asked. */
  const cached = <E extends Invalid>(name: string, invalid: () => E, now: number) => {
    if (now < (unknown.get(name) ?? 0)) {
      return Effect.zipRight(
        addresses.failureHere,
        Effect.suspend(() => Effect.fail(invalid()))
      )
    }
    const refusal = known.refusalOf(name, now)
    return refusal === undefined ? undefined : refuseBy(refusal)
  }

  return { refuse, cached }
}

const makeAdmit = (known: KnownLimits, refusals: ReturnType<typeof makeRefusals>): Admit => {
  const lookUps = new BoundedSemaphore(lookUpsAtOnce)
  const paused = makeRefusalPause()

  const lookUp = <A extends CredentialLimits, E extends Invalid, R>(
    name: string,
    ask: (tokens: TokensToTake) => Effect.Effect<A, E | ServiceUnavailable, R>
  ) =>
    Effect.gen(function* () {
      const startedAt = yield* monotonicMillis
      const credential = known.get(name)
      const asked = known.tokensToTake(credential, startedAt)
      const answer = yield* whilePrefetching(credential, asked, ask(asked)).pipe(
        Effect.catchAll((error) => refusals.refuse(name, error))
      )
      // The credential's own limit refused first, so these were not returned: the next request returns them
      if (answer.organization === null && credential?.organization) {
        credential.organization.ahead += asked.organizationReturned
      }
      const now = yield* monotonicMillis
      yield* enforce(known.learn(name, answer, asked, now))
      const request = yield* HttpServerRequest.HttpServerRequest
      bodyShareOf(messageOf(request))?.recognize()
      return answer
    })

  return (name, ask, invalid, exists) => {
    // Checked again after waiting: an earlier request may already have the answer
    const judged = Effect.flatMap(monotonicMillis, (now) => refusals.cached(name, invalid, now) ?? lookUp(name, ask))
    return Effect.flatMap(monotonicMillis, (now) => {
      const refusal = refusals.cached(name, invalid, now)
      if (refusal !== undefined) {
        return paused(name, refusal)
      }
      const credential = known.get(name)
      if (credential !== undefined) return inTurns(credential, judged, now)
      return Effect.flatMap(exists, (isOne) => (isOne ? lookUps.turn(judged) : refusals.refuse(name, invalid())))
    })
  }
}

const make = Effect.fnUntraced(function* (options: RequestAdmissionOptions) {
  const policies = credentialPolicies(options.rateLimitPerMinute)
  const addresses = makeAddressLimits(options, yield* RateLimits)
  const known = new KnownLimits(policies)

  return {
    policies,
    admit: makeAdmit(known, makeRefusals(known, addresses)),
    refuse: <E extends Invalid>(error: E) => Effect.zipRight(addresses.failureHere, Effect.fail(error)),
    countFailure: addresses.failure,
    client: clientNetwork(options.trustedProxies),
    admitSignInLink: addresses.signInLink,
    admitRedemption: addresses.redemption
  }
})

export class RequestAdmission extends serviceWith<RequestAdmission>()(
  "connected-payments/identity/RequestAdmission",
  make
) {}
