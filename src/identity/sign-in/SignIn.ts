import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, type Redacted } from "effect"
import { Claims } from "../../cells/Claims.ts"
import { type RateLimitExceeded, type ServiceUnavailable, SessionInvalid } from "../../errors/Errors.ts"
import type { OrganizationId } from "../../kit/Ids.ts"
import { Mailer } from "../../kit/Mailer.ts"
import { RateLimits } from "../../kit/RateLimit.ts"
import { orUnavailable, transaction } from "../../storage/Database.ts"
import { makeMemberships } from "../members/MembershipsRepo.ts"
import { makeRefuseUnknownCredential } from "../UnknownCredential.ts"
import { takeSignInLink } from "./MailLimits.ts"
import { signInMail, signInMinutes } from "./Mails.ts"
import { newToken, type Session, Sessions, tokenHash } from "./Sessions.ts"

/** A session just begun, with the token of its cookie, which only this answer has. */
export interface BegunSession {
  readonly token: Redacted.Redacted
  readonly session: Session
}

/** The person and the expiry of a sign-in link. */
export interface LinkPreview {
  readonly email: string
  readonly expiresAt: Date
}

/** Sign-in by e-mail link (the contract leaves the session's login open). */
export class SignIn extends Context.Tag("connected-payments/identity/SignIn")<
  SignIn,
  {
    /**
     * Mails a one-time link, valid 15 minutes, in the background. Does the same for every address, known or not: a
     * person is created when their first link is redeemed. Within `signInLinkLimits`.
     */
    readonly requestLink: (email: string) => Effect.Effect<void, RateLimitExceeded | ServiceUnavailable>
    /** Shows whom a link signs in, without using it. Unknown, used and expired links get the same refusal. */
    readonly preview: (token: Redacted.Redacted) => Effect.Effect<LinkPreview, SessionInvalid | ServiceUnavailable>
    /**
     * Begins a session with a link's token, and ends the person's other open links. Unknown, used and expired links get
     * the same refusal.
     *
     * @param client the client that signs in, as `describeClient` returns it
     */
    readonly redeem: (
      token: Redacted.Redacted,
      client: string | null
    ) => Effect.Effect<BegunSession, SessionInvalid | ServiceUnavailable>
    /** Removes the tokens of links that have expired. */
    readonly clean: Effect.Effect<void, ServiceUnavailable>
  }
>() {
  static readonly layer = (options: {
    /** The public URL of the service, without a trailing slash. */
    readonly publicUrl: string
  }): Layer.Layer<SignIn, never, SqlClient.SqlClient | Claims | Sessions | RateLimits | Mailer> =>
    Layer.effect(SignIn, make(options.publicUrl))
}

const make = Effect.fnUntraced(function* (publicUrl: string) {
  const sql = yield* SqlClient.SqlClient
  const refuseUnknown = yield* makeRefuseUnknownCredential
  const sessions = yield* Sessions
  const limits = yield* RateLimits
  const mailer = yield* Mailer
  const memberships = yield* makeMemberships
  const claims = yield* Claims

  /** Nobody is looked up without a directory; with one, everybody is: it takes the same time for every address. */
  const tagOf = (email: string) =>
    claims.cell === null
      ? Effect.succeed(null)
      : Effect.map(
          sql<{ readonly organizationId: OrganizationId }>`
            SELECT m.organization_id AS "organizationId" FROM payments.people p
            JOIN payments.memberships m ON m.person_id = p.id WHERE p.email = ${email}`,
          ([member]) => claims.tagOf(member?.organizationId ?? null)
        )

  const requestLink = Effect.fn("SignIn.requestLink")(function* (email: string) {
    yield* takeSignInLink(limits, email)
    const token = newToken(yield* tagOf(email))
    yield* sql`
      INSERT INTO payments.login_tokens (token_hash, email, expires_at)
      VALUES (${tokenHash(token)}, ${email}, now() + ${signInMinutes} * interval '1 minute')`
    yield* mailer.queue(signInMail({ publicUrl, to: email, token }))
  }, orUnavailable)

  const invalid = () =>
    new SessionInvalid({
      message:
        "The sign-in link is not valid: it is unknown, was used, has expired, or another one was used after it was sent. Ask for a new one."
    })

  const find = Effect.fnUntraced(function* (token: Redacted.Redacted) {
    const [found] = yield* sql<LinkPreview>`
      SELECT email, expires_at AS "expiresAt" FROM payments.login_tokens
      WHERE token_hash = ${tokenHash(token)} AND used_at IS NULL AND expires_at > now()`
    return found ?? (yield* refuseUnknown(tokenHash(token), invalid))
  })

  const preview = Effect.fn("SignIn.preview")(find, orUnavailable)

  const begin = (token: Redacted.Redacted, client: string | null) =>
    transaction(sql)(
      Effect.gen(function* () {
        const { email } = yield* find(token)
        // Holds the person's row: if several of their links are used at the same time, the first one ends the
        // others
        const personId = yield* memberships.ensurePerson(email)
        const [used] = yield* sql`
          UPDATE payments.login_tokens SET used_at = now()
          WHERE token_hash = ${tokenHash(token)} AND used_at IS NULL AND expires_at > now() RETURNING 1`
        if (used === undefined) {
          return yield* invalid()
        }
        return yield* sessions.create(personId, client)
      })
    )

  const redeem = Effect.fn("SignIn.redeem")(function* (token: Redacted.Redacted, client: string | null) {
    const session = begin(token, client)
    if (claims.cell === null) {
      return yield* session
    }
    const { email } = yield* find(token)
    // Who is known here was claimed when they were written, so that they can sign in while the directory is away
    return yield* (yield* memberships.isKnown(email))
      ? session
      : session.pipe(
          claims.person(email, null, memberships.isKnown(email)),
          // Since the link was sent, they have become a person of another cell, where a new link will be from
          Effect.catchTag("TakenElsewhere", invalid)
        )
  }, orUnavailable)

  const clean = sql`DELETE FROM payments.login_tokens WHERE expires_at < now()`.pipe(Effect.asVoid, orUnavailable)

  return { requestLink, preview, redeem, clean }
})
