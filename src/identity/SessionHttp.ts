import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { CurrentSession } from "./Authentication.ts"
import { makeSessionAnswer } from "./SessionAnswer.ts"
import { clearSessionCookie } from "./SessionCookie.ts"
import { Sessions } from "./Sessions.ts"

/** Serves `SessionApi`. */
export const sessionHttp = HttpApiBuilder.group(Api, "session", (handlers) =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const answer = yield* makeSessionAnswer
    return handlers
      .handle("get", () => Effect.flatMap(CurrentSession, answer))
      .handle(
        "end",
        Effect.fnUntraced(function* () {
          const session = yield* CurrentSession
          yield* sessions.end(session.id)
          yield* clearSessionCookie
        })
      )
      .handle(
        "selectWorkspace",
        Effect.fnUntraced(function* ({ payload }) {
          const session = yield* CurrentSession
          return yield* answer(yield* sessions.selectWorkspace(session, payload.environment))
        })
      )
  })
)
