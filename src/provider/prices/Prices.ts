import { Context, Effect, Layer, Predicate } from "effect"
import { PermissionDenied, type ProviderAccountNotConnected, type ServiceUnavailable } from "../../Errors.ts"
import type { PrincipalShape } from "../../identity/Principal.ts"
import type { Tenant } from "../../kit/Tenant.ts"
import { Accounts } from "../Accounts.ts"
import { type ConnectedAccount, Provider } from "../Provider.ts"
import type { ProviderFailure } from "../ProviderErrors.ts"
import { requestRefused } from "../RefusalReasons.ts"
import type { ProviderObject } from "../Schemas.ts"

/** What of a price decides how it can be sold; it never changes. */
export interface PriceTerms {
  readonly recurring: boolean
  /** Days of trial that a subscription at this price begins with; null for none. */
  readonly trialPeriodDays: number | null
}

/** What line items name. */
type Lines = ReadonlyArray<{ readonly price: string }>

/** What is known of prices that are to be sold. */
export class Prices extends Context.Tag("connected-payments/provider/Prices")<
  Prices,
  {
    /**
     * The terms of each line's price, as the provider keeps them; it is asked once for each price. A price that it does
     * not know is refused as a parameter: `provider_resource_missing`, `line_items.<n>.price`.
     */
    readonly termsOf: (
      tenant: Tenant,
      lines: Lines
    ) => Effect.Effect<ReadonlyArray<PriceTerms>, ProviderFailure | ProviderAccountNotConnected | ServiceUnavailable>
  }
>() {
  static readonly layer: Layer.Layer<Prices, never, Provider | Accounts> = Layer.effect(
    Prices,
    Effect.gen(function* () {
      const provider = yield* Provider
      const accounts = yield* Accounts
      const known = makeRecentlyUsed<PriceTerms>(10_000)

      const read = (account: ConnectedAccount, id: string, line: number) => {
        const key = `${account.environment}\n${account.accountId}\n${id}`
        const terms = known.get(key)
        return terms === undefined
          ? provider.retrievePrice(account, id).pipe(
              Effect.map((price) => known.set(key, readTerms(price))),
              Effect.mapError((failure) =>
                failure._tag === "ProviderObjectNotFound"
                  ? requestRefused({
                      code: failure.code,
                      fields: [`line_items.${line}.price`],
                      cause: failure.cause
                    })
                  : failure
              )
            )
          : Effect.succeed(terms)
      }

      const termsOf = Effect.fn("Prices.termsOf")(function* (tenant: Tenant, lines: Lines) {
        const places = new Map(lines.map(({ price }, line) => [price, line] as const).toReversed())
        return yield* accounts.use(tenant, (account) =>
          Effect.forEach([...places], ([id, line]) => read(account, id, line), { concurrency: 5 })
        )
      })

      return { termsOf }
    })
  )
}

const readTerms = ({ recurring }: ProviderObject): PriceTerms => ({
  recurring: Predicate.isRecord(recurring),
  trialPeriodDays:
    Predicate.isRecord(recurring) && typeof recurring["trial_period_days"] === "number"
      ? recurring["trial_period_days"]
      : null
})

/** Values by key, the longest unused ones forgotten. */
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

/**
 * The trial of a subscription at several prices: the longest one, since none of them may be charged before its own trial
 * has passed.
 */
export const trialOf = (terms: ReadonlyArray<PriceTerms>): number | null => {
  const trials = terms.flatMap(({ trialPeriodDays }) => (trialPeriodDays === null ? [] : [trialPeriodDays]))
  return trials.length === 0 ? null : Math.max(...trials)
}

/** To sell at a recurring price also needs `subscriptions:write` (contract 2.5). */
export const requireSubscriptions = (principal: PrincipalShape): Effect.Effect<void, PermissionDenied> =>
  principal.permissions.has("subscriptions:write")
    ? Effect.void
    : new PermissionDenied({ message: "A recurring price also needs the permission subscriptions:write." })
