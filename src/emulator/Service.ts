import { Clock, Effect } from "effect"
import type { Store } from "./Store.ts"

/** The state that the emulator's HTTP interfaces share. */
export interface Service {
  readonly store: Store
  /** The platform's own account. */
  readonly platformId: string
  readonly secretKey: string
  readonly baseUrl: string
}

/** The time in Unix seconds. */
export const unixSeconds: Effect.Effect<number> = Effect.map(Clock.currentTimeMillis, (milliseconds) =>
  Math.floor(milliseconds / 1_000)
)
