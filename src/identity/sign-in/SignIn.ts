import { SqlClient } from "@effect/sql"
import { Effect, type Redacted } from "effect"
import { SessionInvalid } from "../../platform/errors/Errors.ts"
import { Mailer } from "../../platform/kit/Mailer.ts"
import { RateLimits } from "../../platform/kit/RateLimit.ts"
import { serviceWith } from "../../platform/kit/Service.ts"
import { orUnavailable, transaction } from "../../platform/storage/Database.ts"
import { makeMembersRepo } from "../members/MembersRepo.ts"
import type { Session } from "../Principal.ts"
import { takeSignInLink } from "./MailLimits.ts"
import { signInMail, signInMinutes } from "./Mails.ts"
import { newToken, Sessions, tokenHash } from "./Sessions.ts"
import { makeSignInRepo } from "./SignInRepo.ts"

/** A new session with the token of its cookie, which is returned only here. */
export interface BegunSession {
  readonly token: Redacted.Redacted
  readonly session: Session
}

const make = Effect.fnUntraced(function* ({ publicUrl }: { readonly publicUrl: string }) {
  const sql = yield* SqlClient.SqlClient
  const repo = yield* makeSignInRepo
  const sessions = yield* Sessions
  const limits = yield* RateLimits
  const mailer = yield* Mailer
  const memberships = yield* makeMembersRepo

  /**
   * Mails a one-time link, valid 15 minutes, in the background. Does the same for every address, known or not: a
   * person is created when their first link is redeemed. Within `signInLinkLimits`.
   *
   * @param client the network of the client that asks, as `clientNetwork` returns it
   */
  const requestLink = Effect.fn("SignIn.requestLink")(function* (email: string, client: string) {
    const isKnown = orUnavailable(Effect.map(repo.isKnown(email), (people) => people.length > 0))
    const isMailed = yield* takeSignInLink(limits, { email, client, isKnown })
    const token = newToken()
    // Stored in any case: how long an answer takes does not tell who is known
    yield* repo.insertLink(tokenHash(token), email, signInMinutes)
    if (isMailed) yield* mailer.queue(signInMail({ publicUrl, to: email, token }))
  }, orUnavailable)

  const invalid = () =>
    new SessionInvalid({
      message:
        "The sign-in link is not valid: it is unknown, was used, has expired, or another one was used after it was sent. Ask for a new one."
    })

  const find = Effect.fnUntraced(function* (token: Redacted.Redacted) {
    const [found] = yield* repo.findLink(tokenHash(token))
    return found ?? (yield* invalid())
  })

  /** Shows whom a link signs in, without using it. Unknown, used and expired links get the same refusal. */
  const preview = Effect.fn("SignIn.preview")(find, orUnavailable)

  /**
   * Creates a session with a link's token, and ends the person's other open links. Unknown, used and expired links
   * get the same refusal.
   *
   * @param client the client that signs in, as `describeClient` returns it
   */
  const redeem = Effect.fn("SignIn.redeem")(
    function* (token: Redacted.Redacted, client: string | null) {
      const { email } = yield* find(token)
      // Locks the person's row: if several of their links are used at the same time, the first one ends the others
      const personId = yield* memberships.ensurePerson(email)
      const [used] = yield* repo.useLink(tokenHash(token))
      return yield* used === undefined ? invalid() : sessions.create(personId, client)
    },
    transaction(sql),
    orUnavailable
  )

  return { requestLink, preview, redeem, clean: orUnavailable(repo.cleanLinks) }
})

export class SignIn extends serviceWith<SignIn>()("connected-payments/identity/SignIn", make) {}
