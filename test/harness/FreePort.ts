import { Effect } from "effect"
import { freePort as freePortOn } from "../../src/platform/storage/embedded/FreePort.ts"

export const freePort: Effect.Effect<number> = Effect.orDie(freePortOn("127.0.0.1"))
