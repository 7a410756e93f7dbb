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
 * Lets credentials in, within their limits, so that what is refused costs nobody else anything: what the database has just
 * said of a credential or a bucket is not asked again. A good credential costs one round trip, its limits included.
 */

/** What admissions ask of the operator's settings. */
export interface AdmissionOptions {
  /** Requests per minute and credential (contract 3.7). */
  readonly rateLimitPerMinute: number
  /** Failed authentications, and requests without a credential, per minute and client address. */
  readonly failedAuthenticationsPerMinute: number
  readonly trustedProxies: TrustedProxies
}

/** How long an answer of the database about a credential is taken for granted: what was revoked is refused after it. */
const trustedMillis = 1000

/** Credentials and organizations that a process remembers, at most of each. */
const maxRemembered = 10_000

/** Credentials that this process has never let in are looked up so many at a time: guessing must not fill the pool. */
const lookUpsAtOnce = 2

/** Tokens of an organization that a process takes at a time, so that its busy keys don't wait for one row. */
const aheadOf = ({ limit }: RateLimitPolicy): number => Math.min(100, Math.max(1, Math.floor(limit / 100)))

/**
 * How long a refusal waits that is known beforehand: a sender that goes on without heed sends less, and leaves the
 * processor to the others.
 */
const refusalPause = "100 millis"

/** Redemptions of mailed links for each failure that an address may have: most of them are good. */
const redemptionsPerFailure = 4

interface Organization {
  readonly bucket: BucketView
  /** Tokens taken ahead: they are used within `trustedMillis`, or lost. */
  ahead: number
  aheadAt: number
  /** Whether a request is taking more of them. */
  asking: boolean
}

interface Credential {
  readonly bucket: BucketView
  readonly organization: Organization | null
}

type Invalid = ApiKeyInvalid | SessionInvalid

type Refusal = RateLimitExceeded | ServiceUnavailable

/** Lets credentials in. */
export class Admissions extends Context.Tag("connected-payments/identity/Admissions")<
  Admissions,
  {
    readonly policies: CredentialPolicies
    /**
     * Who a credential stands for, within its limits, which the response's headers tell.
     *
     * @param credential names it, and is no secret: its hash
     * @param ask the one round trip: looks it up and takes a token of its own, and so many of its organization's
     * @param invalid what it is refused with while it is known to be none
     */
    readonly admit: <A extends CredentialLimits, E extends Invalid, R>(
      credential: string,
      ask: (organizationTokens: number) => Effect.Effect<A, E | ServiceUnavailable, R>,
      invalid: () => E
    ) => Effect.Effect<A, E | Refusal, R | HttpServerRequest.HttpServerRequest>
    /** Refuses what can't be a credential by its form, and counts it as a failure of the address. */
    readonly refuse: <E extends Invalid>(
      error: E
    ) => Effect.Effect<never, E | Refusal, HttpServerRequest.HttpServerRequest>
    /** Counts a failed authentication of the address; fails where it had too many. */
    readonly countFailure: Effect.Effect<void, Refusal, HttpServerRequest.HttpServerRequest>
    /** Lets in a request for a sign-in link, within the limit of its address. */
    readonly admitSignInLink: Effect.Effect<void, Refusal, HttpServerRequest.HttpServerRequest>
    /** Lets in a redemption of a mailed link, within the limit of its address. */
    readonly admitRedemption: Effect.Effect<void, Refusal, HttpServerRequest.HttpServerRequest>
  }
>() {
  static readonly layer = (options: AdmissionOptions): Layer.Layer<Admissions, never, RateLimits> =>
    Layer.effect(
      Admissions,
      Effect.map(RateLimits, (limits) => makeAdmissions(options, limits))
    )
}

/** What is counted per client address. */
const makeAddressLimits = (options: AdmissionOptions, limits: RateLimits["Type"]) => {
  const failures = perMinute(options.failedAuthenticationsPerMinute)
  const redemptions = perMinute(redemptionsPerFailure * options.failedAuthenticationsPerMinute)
  const counted = (kind: string, policy: RateLimitPolicy, take: typeof limits.takeHere) =>
    clientNetwork(options.trustedProxies).pipe(
      Effect.flatMap((address) => take(`${kind}:${address}`, policy)),
      Effect.catchTag("BucketEmpty", ({ retryAfter }) => rateLimitExceeded("address", policy, retryAfter))
    )
  return {
    /** A failed authentication: a good credential is never held up by them. */
    failure: counted("failed-authentication", failures, limits.take),
    /** One that asked the database nothing. */
    failureHere: counted("failed-authentication", failures, limits.takeHere),
    signInLink: counted("sign-in-links", failures, limits.take),
    redemption: counted("redemptions", redemptions, limits.take)
  }
}

function makeAdmissions(options: AdmissionOptions, limits: RateLimits["Type"]): Admissions["Type"] {
  const policies = credentialPolicies(options.rateLimitPerMinute)
  const addresses = makeAddressLimits(options, limits)
  /** Until when a credential is known to be none. */
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

  /** Why a credential is refused without a question. */
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
    // A person joins an organization and leaves it while their session goes on
    if (known !== undefined && known.organization === organization) {
      return known
    }
    const made = { bucket: known?.bucket ?? unknownBucket(policies.own, now), organization }
    credentials.set(name, made)
    return made
  }

  /** How many of its organization's tokens a request asks for: none where one was taken ahead, which it uses. */
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
    // Not many of the last ones: another process may need them
    return Math.min(aheadOf(policies.organization), Math.max(1, Math.floor(organization.bucket.tokens / 20)))
  }

  /** Keeps what the database said, and answers which limit binds the request the most. */
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

  /** Remembers for a moment what is no credential, or none any more. */
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

  /** One request at a time asks whether an empty bucket has tokens again; where it has, the others go on together. */
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

  /** Why a credential is refused as things are known here; undefined where the database has to be asked. */
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
    // Judged again after waiting: the one before may have heard what this one would ask
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

  return {
    policies,
    admit,
    refuse: (error) => Effect.zipRight(addresses.failureHere, Effect.fail(error)),
    countFailure: addresses.failure,
    admitSignInLink: addresses.signInLink,
    admitRedemption: addresses.redemption
  }
}
