import { userInfo } from "node:os"
import { Effect } from "effect"
import type { Author } from "../kit/Tenant.ts"

/** Who is on record for what is done here: the operating system's user, by number where it has no name. */
export const operator: Effect.Effect<Author> = Effect.try(() => userInfo().username).pipe(
  Effect.orElseSucceed(() => `uid ${process.getuid?.() ?? "unknown"}`),
  Effect.map((id) => ({ kind: "operator", id }))
)
