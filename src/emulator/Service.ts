import { Clock, Effect } from "effect"
import type { Faults } from "./control/Faults.ts"
import type { EmulatorError } from "./EmulatorError.ts"
import type { Store, Transaction } from "./store/Store.ts"

export interface Service {
  readonly store: Store
  readonly platformId: string
  readonly secretKey: string
  readonly baseUrl: string
  readonly faults: Faults
}

export const unixSeconds: Effect.Effect<number> = Effect.map(Clock.currentTimeMillis, (milliseconds) =>
  Math.floor(milliseconds / 1_000)
)

export const transactNow = <A, E, R>(
  store: Store,
  body: (transaction: Transaction, now: number) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | EmulatorError, R> =>
  Effect.flatMap(unixSeconds, (now) => store.transact((transaction) => body(transaction, now)))
