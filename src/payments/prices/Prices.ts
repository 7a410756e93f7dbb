import { Clock, Duration, Effect, Predicate } from "effect"
import type { PrincipalShape } from "../../identity/Principal.ts"
import { PermissionDenied } from "../../platform/errors/Errors.ts"
import { service } from "../../platform/kit/Service.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import { Accounts } from "../Accounts.ts"
import { Provider } from "../Provider.ts"
import type { ConnectedAccount } from "../ProviderCall.ts"
import { requestRefused } from "../RefusalReasons.ts"
import type { ProviderObject } from "../Schemas.ts"

/** The terms of a price that decide how it can be sold. Its trial can be changed at the provider. */
export interface PriceTerms {
  readonly recurring: boolean
  /** Days of trial at the start of a subscription at this price; null for none. */
  readonly trialPeriodDays: number | null
}

type Lines = ReadonlyArray<{ readonly price: string }>

const readTerms = ({ recurring }: ProviderObject): PriceTerms => ({
  recurring: Predicate.isRecord(recurring),
  trialPeriodDays:
    Predicate.isRecord(recurring) && typeof recurring["trial_period_days"] === "number"
      ? recurring["trial_period_days"]
      : null
})

/** A cache of values by key that evicts the least recently used. */
const makeRecentlyUsed = <A>(capacity: number) => {
  const values = new Map<string, A>()
  const set = (key: string, value: A): A => {
    values.delete(key)
    values.set(key, value)
    for (const oldest of values.keys()) {
      if (values.size <= capacity) break
      values.delete(oldest)
    }
    return value
  }
  return {
    set,
    get: (key: string): A | undefined => {
      const value = values.get(key)
      return value === undefined ? undefined : set(key, value)
    }
  }
}

/** How long terms are cached, in milliseconds: the longest delay until a trial changed at the provider takes effect. */
const rememberedFor = Duration.toMillis("5 minutes")

const make = Effect.gen(function* () {
  const provider = yield* Provider
  const accounts = yield* Accounts
  const known = makeRecentlyUsed<{ readonly terms: PriceTerms; readonly readAt: number }>(10_000)

  const read = (account: ConnectedAccount, id: string, line: number) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const key = `${account.environment}\n${account.accountId}\n${id}`
      const found = known.get(key)
      return found !== undefined && now - found.readAt < rememberedFor
        ? Effect.succeed(found.terms)
        : provider.retrievePrice(account, id).pipe(
            Effect.map((price) => known.set(key, { terms: readTerms(price), readAt: now }).terms),
            Effect.mapError((failure) =>
              failure._tag === "ProviderObjectNotFound"
                ? requestRefused({ code: failure.code, fields: [`line_items.${line}.price`], cause: failure.cause })
                : failure
            )
          )
    })

  /** Cached for 5 minutes. An unknown price is refused as the parameter `line_items.<n>.price`. */
  const termsOf = Effect.fn("Prices.termsOf")(function* (tenant: Tenant, lines: Lines) {
    const places = new Map(lines.map(({ price }, line) => [price, line] as const).toReversed())
    const terms = yield* accounts.use(tenant, (account) =>
      Effect.forEach([...places], ([id, line]) => Effect.map(read(account, id, line), (of) => [id, of] as const), {
        concurrency: 5
      })
    )
    const byPrice = new Map(terms)
    return lines.flatMap(({ price }) => byPrice.get(price) ?? [])
  })

  return { termsOf }
})

export class Prices extends service<Prices>()("connected-payments/payments/Prices", make) {}

/** The longest, since no price may be charged before its own trial has ended. */
export const trialOf = (terms: ReadonlyArray<PriceTerms>): number | null => {
  const trials = terms.flatMap(({ trialPeriodDays }) => (trialPeriodDays === null ? [] : [trialPeriodDays]))
  return trials.length === 0 ? null : Math.max(...trials)
}

/** Requires `subscriptions:write`, which selling at a recurring price also needs (contract 2.5). */
export const requireSubscriptions = (
  principal: Pick<PrincipalShape, "permissions">
): Effect.Effect<void, PermissionDenied> =>
  principal.permissions.has("subscriptions:write")
    ? Effect.void
    : new PermissionDenied({ message: "A recurring price also needs the permission subscriptions:write." })
