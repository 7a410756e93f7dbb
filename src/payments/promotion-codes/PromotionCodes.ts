import { Effect, Predicate } from "effect"
import { IdempotencyKeyReused, ProviderRequestRefused } from "../../platform/errors/Errors.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import { Accounts } from "../Accounts.ts"
import { Provider } from "../Provider.ts"
import type { ConnectedAccount, KeyFor, ProviderCall, WriteOptions } from "../ProviderCall.ts"
import { isRefusal, type ProviderCallFailure } from "../ProviderErrors.ts"
import { inOurNames } from "../RefusalReasons.ts"
import type { ProviderObject } from "../Schemas.ts"
import type { CreatePromotionCode } from "./Api.ts"

/** The calls of one attempt: their idempotency keys, and the coupon's id, by which a repeat recognizes its coupon. */
interface Steps {
  readonly couponId: string
  readonly coupon: WriteOptions
  readonly code: WriteOptions
}

/** Maximum attempts of a request under one key: each may be refused, undone and repeated. */
const maximumTries = 5

const stepsOf = (account: ConnectedAccount, keyFor: KeyFor): ReadonlyArray<Steps> =>
  Array.from({ length: maximumTries }, (_, number) => ({
    couponId: `svc_${keyFor(account, `coupon id ${number}`).idempotencyKey.slice(0, 32)}`,
    coupon: keyFor(account, `coupon ${number}`),
    code: keyFor(account, `code ${number}`)
  }))

const couponIdOf = ({ coupon }: ProviderObject): unknown => (Predicate.isRecord(coupon) ? coupon["id"] : coupon)

/** Whether a provider object has this value in a field; undefined matches a field that is null or absent. */
const has = (object: ProviderObject, field: string, value: string | number | undefined): boolean =>
  (object[field] ?? undefined) === value

/** Whether two percentages are equal up to the provider's rounding. */
const isAbout = (percentage: unknown, wanted: number | undefined): boolean =>
  wanted === undefined ? (percentage ?? undefined) === undefined : Math.abs(Number(percentage) - wanted) < 0.01

const hasTerms = (code: ProviderObject, params: CreatePromotionCode): boolean => {
  const coupon = Predicate.isReadonlyRecord(code["coupon"]) ? code["coupon"] : {}
  const appliesTo = Predicate.isReadonlyRecord(coupon["applies_to"]) ? coupon["applies_to"]["products"] : []
  const products = new Set(Array.isArray(appliesTo) ? appliesTo : [])
  const wanted = new Set(params.products)
  const { amount_off, currency, percent_off } = params.discount
  return (
    isAbout(coupon["percent_off"], percent_off) &&
    has(coupon, "amount_off", amount_off) &&
    has(coupon, "currency", currency) &&
    has(coupon, "duration", params.duration) &&
    has(coupon, "duration_in_months", params.duration_in_months) &&
    has(code, "max_redemptions", params.max_redemptions) &&
    has(code, "expires_at", params.expires_at) &&
    products.size === wanted.size &&
    [...wanted].every((product) => products.has(product))
  )
}

const alreadyExists = (cause?: unknown) =>
  new ProviderRequestRefused({
    code: "provider_resource_already_exists",
    message: "code is taken already: another promotion code that is active has it, whatever its case.",
    fields: ["code"],
    cause
  })

/** Whether the coupon's id is already used, by a request whose idempotency key the provider has forgotten. */
const isUsedUp = (failure: ProviderCallFailure): boolean =>
  failure._tag === "ProviderRequestRefused" &&
  failure.code === "provider_resource_already_exists" &&
  failure.fields.includes("id")

const isCouponGone = (failure: ProviderCallFailure): boolean =>
  failure._tag === "ProviderRequestRefused" &&
  failure.code === "provider_resource_missing" &&
  failure.fields.includes("promotion.coupon")

const makeParts = Effect.gen(function* () {
  const provider = yield* Provider
  const accounts = yield* Accounts
  const findActive = (account: ConnectedAccount, code: string) =>
    Effect.map(provider.listPromotionCodes(account, { code, active: true, limit: 1 }), ({ data: [found] }) => found)
  return { provider, accounts, findActive }
})

type Parts = Effect.Effect.Success<typeof makeParts>

const makeCalls = ({ provider }: Parts) => {
  /** Creates the coupon of an attempt; returns none if the attempt's id was already used. */
  const createCoupon = (account: ConnectedAccount, params: CreatePromotionCode, steps: Steps) => {
    const { code: _, expires_at: __, max_redemptions: ___, metadata: ____, ...coupon } = params
    return provider.createCoupon(account, { ...coupon, id: steps.couponId }, steps.coupon).pipe(
      Effect.asSome,
      Effect.catchIf(isUsedUp, () => Effect.succeedNone)
    )
  }

  const createCode = (account: ConnectedAccount, params: CreatePromotionCode, steps: Steps) => {
    const { code, expires_at, max_redemptions, metadata } = params
    return provider.createPromotionCode(
      account,
      {
        code,
        coupon: steps.couponId,
        ...(expires_at === undefined ? {} : { expires_at }),
        ...(max_redemptions === undefined ? {} : { max_redemptions }),
        ...(metadata === undefined ? {} : { metadata })
      },
      steps.code
    )
  }

  /** Deletes the coupon. If that fails, the error asks the caller to repeat the request, which resumes here. */
  const undo = (account: ConnectedAccount, steps: Steps) =>
    Effect.catchIf(provider.deleteCoupon(account, steps.couponId), isRefusal, () => Effect.void)

  return { createCoupon, createCode, undo }
}

/** Explains a refusal. The provider reports a duplicate only in its message, so the active codes are read. */
const makeExplain =
  ({ findActive }: Parts) =>
  (account: ConnectedAccount, code: string, refusal: ProviderCallFailure): ProviderCall<never> =>
    refusal._tag === "ProviderRequestRefused" && refusal.fields.length === 0
      ? Effect.flatMap(findActive(account, code), (found) =>
          Effect.fail(found === undefined ? refusal : alreadyExists(refusal.cause))
        )
      : Effect.fail(inOurNames({ promotion: null })(refusal))

/** Creates a code, with the next coupon if the first was deleted because an earlier request was refused and undone. */
const makeTryToCreate = (
  { createCode, createCoupon, undo }: ReturnType<typeof makeCalls>,
  explain: ReturnType<typeof makeExplain>
) => {
  const tryToCreate = (
    account: ConnectedAccount,
    params: CreatePromotionCode,
    steps: ReadonlyArray<Steps>
  ): ProviderCall<ProviderObject> =>
    Effect.gen(function* () {
      const [current, ...later] = steps
      if (current === undefined) {
        return yield* new IdempotencyKeyReused({
          message: "Requests with this Idempotency-Key were refused too often; send a new one."
        })
      }
      const coupon = yield* createCoupon(account, params, current)
      if (coupon._tag === "None") {
        return yield* tryToCreate(account, params, later)
      }
      return yield* createCode(account, params, current).pipe(
        Effect.catchIf(isRefusal, (refusal) =>
          isCouponGone(refusal)
            ? tryToCreate(account, params, later)
            : Effect.zipRight(undo(account, current), explain(account, params.code, refusal))
        )
      )
    })
  return tryToCreate
}

export const makePromotionCodes = Effect.gen(function* () {
  const parts = yield* makeParts
  const calls = makeCalls(parts)
  const explain = makeExplain(parts)
  const tryToCreate = makeTryToCreate(calls, explain)
  /**
   * Creates a coupon and its code, or neither: if the code is refused, the coupon is deleted. A repeat under the same
   * key completes what a crash or a lost answer interrupted, and creates nothing twice.
   *
   * If the code is active already, it fails with `provider_resource_already_exists`, `fields: ["code"]`.
   */
  const create = Effect.fn("PromotionCodes.create")(function* (
    tenant: Tenant,
    params: CreatePromotionCode,
    keyFor: KeyFor
  ) {
    return yield* parts.accounts.use(tenant, (account) =>
      Effect.gen(function* () {
        const steps = stepsOf(account, keyFor)
        const found = yield* parts.findActive(account, params.code)
        if (found === undefined) {
          return yield* tryToCreate(account, params, steps)
        }
        // A code with one of our coupons is from an earlier request whose answer was not stored. If its terms differ,
        // it is from another request, made under the same key before that key was forgotten
        const isOwn = steps.some(({ couponId }) => couponId === couponIdOf(found)) && hasTerms(found, params)
        return isOwn ? found : yield* alreadyExists()
      })
    )
  })

  return { create }
})
