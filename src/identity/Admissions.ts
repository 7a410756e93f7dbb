import type { HttpServerRequest } from "@effect/platform"
import { Context, Effect, Layer, Option } from "effect"
import type { ApiKeyInvalid, RateLimitExceeded, ServiceUnavailable, SessionInvalid } from "../errors/Errors.ts"
import { BoundedMap } from "../kit/BoundedMap.ts"
import { clientNetwork } from "../kit/ClientAddress.ts"
import { enforce, RateLimits, rateLimitExceeded, refuseBy, type ScopedState } from "../kit/RateLimit.ts"
import {
  type BucketView,
  monotonicMillis,
  type RateLimitPolicy,
  tokensAtMost,
  unknownBucket
} from "../kit/TokenBucket.ts"
import type { TrustedProxies } from "../settings/Forms.ts"
import {
  type CredentialLimits,
  type CredentialPolicies,
  credentialPolicies,
  perMinute
} from "./keys/CredentialLimits.ts"

/**
 * Admits requests by credential, within their limits, so that refused ones cost others nothing: the database's last
 * answer about a credential or a bucket is remembered for a moment and not asked for again. A valid credential costs
 * one round trip, including its limits.
 */

/** The settings that admissions need. */
export interface AdmissionOptions {
  /** Requests per minute and credential (contract 3.7). */
  readonly rateLimitPerMinute: number
  /** Failed authentications, and requests without a credential, per minute and client address. */
  readonly failedAuthenticationsPerMinute: number
  readonly trustedProxies: TrustedProxies
}

/**
 * How long the database's answers are trusted. Only refusals and tokens taken ahead are kept: a valid credential is
 * looked up for each request.
 */
const trustedMillis = 1000

/** How many credentials, and how many organizations, a process remembers at most. */
const maxRemembered = 10_000

/** How many credentials unknown to this process are looked up at a time: guessing must not fill the pool. */
const lookUpsAtOnce = 2

/** How many of an organization's tokens a process takes at a time, so that its busy keys don't wait for one row. */
const aheadOf = ({ limit }: RateLimitPolicy): number => Math.min(100, Math.max(1, Math.floor(limit / 100)))

/**
 * How long a refusal is delayed if it is known beforehand: a sender that ignores refusals sends less, and leaves the
 * processor to others.
 */
const refusalPause = "100 millis"

/** Redemptions of mailed links for each failure that an address may have: most of them are valid. */
const redemptionsPerFailure = 4

interface Organization {
  readonly bucket: BucketView
  /** Tokens taken ahead; they are lost unless used within `trustedMillis`. */
  ahead: number
  aheadAt: number
  /** Whether a request is taking more. */
  asking: boolean
}

interface Credential {
  readonly bucket: BucketView
  readonly organization: Organization | null
}

type Invalid = ApiKeyInvalid | SessionInvalid

type Refusal = RateLimitExceeded | ServiceUnavailable

/** Admits requests by credential. */
export class Admissions extends Context.Tag("connected-payments/identity/Admissions")<
  Admissions,
  {
    readonly policies: CredentialPolicies
    /**
     * Looks up a credential, within its limits, which the response's headers show.
     *
     * @param credential a name that is not secret: its hash
     * @param ask the one round trip: looks it up, and takes one token of its own and this many of its organization's
     * @param invalid the error while the credential is known to be invalid
     */
    readonly admit: <A extends CredentialLimits, E extends Invalid, R>(
      credential: string,
      ask: (organizationTokens: number) => Effect.Effect<A, E | ServiceUnavailable, R>,
      invalid: () => E
    ) => Effect.Effect<A, E | Refusal, R | HttpServerRequest.HttpServerRequest>
    /** Refuses a text that can't be a credential, and counts it as a failure of the address. */
    readonly refuse: <E extends Invalid>(
      error: E
    ) => Effect.Effect<never, E | Refusal, HttpServerRequest.HttpServerRequest>
    /** Counts a failed authentication of the address; fails if it had too many. */
    readonly countFailure: Effect.Effect<void, Refusal, HttpServerRequest.HttpServerRequest>
    /** Admits a request for a sign-in link, within the limit of its address. */
    readonly admitSignInLink: Effect.Effect<void, Refusal, HttpServerRequest.HttpServerRequest>
    /** Admits a redemption of a mailed link, within the limit of its address. */
    readonly admitRedemption: Effect.Effect<void, Refusal, HttpServerRequest.HttpServerRequest>
  }
>() {
  static readonly layer = (options: AdmissionOptions): Layer.Layer<Admissions, never, RateLimits> =>
    Layer.effect(Admissions, make(options))
}

/** The limits per client address. */
const makeAddressLimits = (options: AdmissionOptions, limits: RateLimits["Type"]) => {
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
    /** A failed authentication that did not ask the database. */
    failureHere: counted("failed-authentication", failures, limits.takeHere),
    signInLink: counted("sign-in-links", failures, limits.take),
    redemption: counted("redemptions", redemptions, limits.take)
  }
}

const make = Effect.fnUntraced(function* (options: AdmissionOptions) {
  const limits = yield* RateLimits
  const policies = credentialPolicies(options.rateLimitPerMinute)
  const addresses = makeAddressLimits(options, limits)
  /** Until when a credential is known to be invalid. */
  const unknown = new BoundedMap<number>(maxRemembered)
  const credentials = new BoundedMap<Credential>(maxRemembered)
  const organizations = new BoundedMap<Organization>(maxRemembered)
  const lookUps = Effect.unsafeMakeSemaphore(lookUpsAtOnce)

  const isKnownInvalid = (credential: string, now: number): boolean => now < (unknown.get(credential) ?? 0)

  const isEmpty = (view: BucketView, policy: RateLimitPolicy, now: number): boolean =>
    view.tokens < 1 && now - view.at < trustedMillis && tokensAtMost(view, policy, now) < 1

  const ahead = (organization: Organization, now: number): number =>
    now - organization.aheadAt < trustedMillis ? organization.ahead : 0

  const ownState = ({ bucket }: Credential, allowed: boolean, now: number): ScopedState => ({
    scope: "credential",
    policy: policies.own,
    state: { allowed, tokens: tokensAtMost(bucket, policies.own, now) }
  })

  const sharedState = (organization: Organization, allowed: boolean, now: number): ScopedState => ({
    scope: "organization",
    policy: policies.organization,
    state: {
      allowed,
      tokens: tokensAtMost(organization.bucket, policies.organization, now) + ahead(organization, now)
    }
  })

  /** Why a credential is refused without asking the database. */
  const refusalOf = (credential: Credential, now: number): ScopedState | undefined => {
    const { bucket, organization } = credential
    if (isEmpty(bucket, policies.own, now)) {
      return ownState(credential, false, now)
    }
    return organization !== null &&
      ahead(organization, now) < 1 &&
      isEmpty(organization.bucket, policies.organization, now)
      ? sharedState(organization, false, now)
      : undefined
  }

  const organizationOf = (id: string, now: number): Organization => {
    const known = organizations.get(id)
    if (known !== undefined) {
      return known
    }
    const made = { bucket: unknownBucket(policies.organization, now), ahead: 0, aheadAt: now, asking: false }
    organizations.set(id, made)
    return made
  }

  const credentialOf = (name: string, organizationId: string | null, now: number): Credential => {
    const known = credentials.get(name)
    const organization = organizationId === null ? null : organizationOf(organizationId, now)
    // A person may join or leave an organization during their session
    if (known !== undefined && known.organization === organization) {
      return known
    }
    const made = { bucket: known?.bucket ?? unknownBucket(policies.own, now), organization }
    credentials.set(name, made)
    return made
  }

  /** How many of its organization's tokens a request asks for: none if it can use one that was taken ahead. */
  const tokensToAsk = (organization: Organization | null | undefined, now: number): number => {
    if (organization === null || organization === undefined) {
      return 1
    }
    if (ahead(organization, now) >= 1) {
      organization.ahead -= 1
      return 0
    }
    if (organization.asking) {
      return 1
    }
    // Only a few if not many tokens are left: another process may need them
    return Math.min(aheadOf(policies.organization), Math.max(1, Math.floor(organization.bucket.tokens / 20)))
  }

  /** Keeps the database's answer, and returns the limit that is closest. */
  const learn = (name: string, answer: CredentialLimits, asked: number, now: number): ScopedState => {
    const credential = credentialOf(name, answer.organizationId, now)
    const { bucket, organization } = credential
    bucket.tokens = answer.own.tokens
    bucket.at = now
    const own = ownState(credential, answer.own.granted >= 1, now)
    if (organization === null) {
      return own
    }
    if (answer.organization !== null) {
      organization.ahead = ahead(organization, now) + Math.max(0, answer.organization.granted - 1)
      organization.aheadAt = now
      organization.bucket.tokens = answer.organization.tokens
      organization.bucket.at = now
    }
    if (!own.state.allowed) {
      organization.ahead += asked === 0 ? 1 : 0
      return own
    }
    const shared = sharedState(organization, asked === 0 || (answer.organization?.granted ?? 0) >= 1, now)
    return shared.state.allowed && shared.state.tokens >= own.state.tokens ? own : shared
  }

  const lookUp = <A extends CredentialLimits, E extends Invalid, R>(
    name: string,
    ask: (organizationTokens: number) => Effect.Effect<A, E | ServiceUnavailable, R>
  ) =>
    Effect.gen(function* () {
      const startedAt = yield* monotonicMillis
      const organization = credentials.get(name)?.organization ?? null
      const asked = tokensToAsk(organization, startedAt)
      const takesAhead = organization !== null && asked > 1
      if (takesAhead) {
        organization.asking = true
      }
      const answer = yield* ask(asked).pipe(
        Effect.ensuring(
          Effect.sync(() => {
            if (takesAhead) {
              organization.asking = false
            }
          })
        ),
        Effect.catchAll((error) => refuseAnswer(name, error))
      )
      const now = yield* monotonicMillis
      yield* enforce(learn(name, answer, asked, now))
      return answer
    })

  /** Remembers for a moment that a credential is unknown or no longer valid. */
  const refuseAnswer = Effect.fnUntraced(function* <E extends Invalid>(name: string, error: E | ServiceUnavailable) {
    if (error._tag !== "ServiceUnavailable") {
      credentials.delete(name)
      unknown.set(name, (yield* monotonicMillis) + trustedMillis)
      yield* addresses.failure
    }
    return yield* Effect.fail(error)
  })

  const emptied = ({ bucket, organization }: Credential): ReadonlyArray<BucketView> =>
    [organization?.bucket, bucket].flatMap((view) => (view !== undefined && view.tokens < 1 ? [view] : []))

  /**
   * Lets one request at a time ask whether an empty bucket has tokens again; if it has, the others continue together.
   */
  const inTurns = <A, E, R>(credential: Credential, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
    const views = emptied(credential)
    if (views.length === 0) {
      return effect
    }
    const first = Effect.suspend(() => (emptied(credential).length === 0 ? Effect.succeedNone : Effect.asSome(effect)))
    return views
      .reduce((waiting, { turn }) => turn.withPermits(1)(waiting), first)
      .pipe(Effect.flatMap(Option.match({ onNone: () => effect, onSome: Effect.succeed })))
  }

  /** A refusal that this process already knows; undefined if the database has to be asked. */
  const knownRefusal = <E extends Invalid>(name: string, invalid: () => E, now: number) => {
    if (isKnownInvalid(name, now)) {
      return Effect.zipRight(
        addresses.failureHere,
        Effect.suspend(() => Effect.fail(invalid()))
      )
    }
    const credential = credentials.get(name)
    const refusal = credential === undefined ? undefined : refusalOf(credential, now)
    return refusal === undefined ? undefined : refuseBy(refusal)
  }

  const admit: Admissions["Type"]["admit"] = (name, ask, invalid) => {
    // Checked again after waiting: an earlier request may already have the answer
    const judged = Effect.flatMap(monotonicMillis, (now) => knownRefusal(name, invalid, now) ?? lookUp(name, ask))
    return Effect.flatMap(monotonicMillis, (now) => {
      const refusal = knownRefusal(name, invalid, now)
      if (refusal !== undefined) {
        return Effect.delay(refusal, refusalPause)
      }
      const credential = credentials.get(name)
      return credential === undefined ? lookUps.withPermits(1)(judged) : inTurns(credential, judged)
    })
  }

  const refuse: Admissions["Type"]["refuse"] = (error) => Effect.zipRight(addresses.failureHere, Effect.fail(error))

  return {
    policies,
    admit,
    refuse,
    countFailure: addresses.failure,
    admitSignInLink: addresses.signInLink,
    admitRedemption: addresses.redemption
  }
})
