import { Effect } from "effect"
import { ResourceNotFound } from "../../platform/errors/Errors.ts"
import { serving } from "../../platform/kit/Handlers.ts"
import { Mailer } from "../../platform/kit/Mailer.ts"
import { CurrentSession } from "../Authentication.ts"
import { RequestAdmission } from "../RequestAdmission.ts"
import { SessionApi, SignInApi } from "./Api.ts"
import { makeRedemption, makeSessionAnswer, type RedemptionOptions } from "./LinkRedemption.ts"
import { clearSessionCookie } from "./SessionCookie.ts"
import { Sessions } from "./Sessions.ts"
import { SignIn } from "./SignIn.ts"
import { type LinkPageOptions, linkPage, signInPage } from "./SignInPage.ts"

export const signInHttp = (options: RedemptionOptions & LinkPageOptions) =>
  serving(
    SignInApi,
    Effect.all([SignIn, RequestAdmission, makeRedemption(options), Mailer]),
    ([signIn, { client }, { preview, redeem }, { toLog }]) => ({
      requestLink: Effect.fnUntraced(function* ({ payload }) {
        yield* signIn.requestLink(payload.email, yield* client)
        return { sent: true as const, toLog }
      }),
      page: () => Effect.succeed(linkPage(options, "sign-in", signInPage)),
      preview: ({ payload }) => preview(signIn.preview(payload.token)),
      redeem: ({ payload }) => redeem((client) => signIn.redeem(payload.token, client))
    })
  )

export const sessionHttp = serving(SessionApi, Effect.all([Sessions, makeSessionAnswer]), ([sessions, answer]) => ({
  get: () => Effect.flatMap(CurrentSession, answer),
  end: Effect.fnUntraced(function* () {
    const session = yield* CurrentSession
    yield* sessions.end(session, session.id)
    yield* clearSessionCookie
  }),
  list: Effect.fnUntraced(function* () {
    const { id, personId } = yield* CurrentSession
    const found = yield* sessions.list(personId)
    return { data: found.map((session) => ({ ...session, current: session.id === id })) }
  }),
  endAll: Effect.fnUntraced(function* () {
    yield* sessions.endAll(yield* CurrentSession)
    yield* clearSessionCookie
  }),
  endOne: Effect.fnUntraced(function* ({ path }) {
    const session = yield* CurrentSession
    const id = path.id.toLowerCase()
    if (!(yield* sessions.end(session, id))) {
      return yield* new ResourceNotFound({ message: "You have no such session." })
    }
    if (id === session.id) {
      yield* clearSessionCookie
    }
  }),
  selectWorkspace: Effect.fnUntraced(function* ({ payload }) {
    const session = yield* CurrentSession
    return yield* answer(yield* sessions.selectWorkspace(session, payload.environment))
  })
}))
