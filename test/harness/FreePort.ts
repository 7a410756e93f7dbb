import { Effect } from "effect"
import { freePort as freePortOn } from "../../src/platform/storage/FreePort.ts"

/** A port on which nothing listens now. */
export const freePort: Effect.Effect<number> = Effect.orDie(freePortOn("127.0.0.1"))
