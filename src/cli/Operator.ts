import { userInfo } from "node:os"
import { Effect } from "effect"
import type { Author } from "../kit/Tenant.ts"

/** The recorded author of the commands' changes: the operating system's user, by number if it has no name. */
export const operator: Effect.Effect<Author> = Effect.try(() => userInfo().username).pipe(
  Effect.orElseSucceed(() => `uid ${process.getuid?.() ?? "unknown"}`),
  Effect.map((id) => ({ kind: "operator", id }))
)
