import { createHash, randomBytes } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Effect, Redacted } from "effect"
import { type ServiceUnavailable, SessionInvalid, WorkspaceAccessRequired } from "../../platform/errors/Errors.ts"
import { type AuditAction, makeAuditAll } from "../../platform/kit/Audit.ts"
import type { Environment } from "../../platform/kit/Environment.ts"
import { newId } from "../../platform/kit/Ids.ts"
import { service } from "../../platform/kit/Service.ts"
import { orUnavailable, transaction } from "../../platform/storage/Database.ts"
import {
  type CredentialPolicies,
  makeCredentialSearch,
  type TokensToTake,
  toCredentialLimits
} from "../keys/CredentialLimitsStatements.ts"
import type { Session } from "../Principal.ts"
import { makeSignInRepo, type SessionRow } from "./SignInRepo.ts"

/** A token has 256 random bits, so a plain hash can't be reversed by guessing. */
export const tokenHash = (token: Redacted.Redacted): Buffer =>
  createHash("sha256").update(Redacted.value(token)).digest()

const tokenForm = /^[A-Za-z0-9_-]{43}$/

export const newToken = (): Redacted.Redacted => Redacted.make(randomBytes(32).toString("base64url"))

export const isToken = (text: string): boolean => tokenForm.test(text)

const toSession = ({ environments, organizationId, role, ...session }: SessionRow): Session => ({
  id: session.id,
  personId: session.personId,
  email: session.email,
  environment: session.environment,
  expiresAt: session.expiresAt,
  membership: organizationId === null ? null : { organizationId, role, environments }
})

const makeParts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const repo = yield* makeSignInRepo
  const auditAll = yield* makeAuditAll

  /** Without an organization there is no log. */
  const record = (
    { membership, personId }: Pick<Session, "membership" | "personId">,
    action: AuditAction,
    sessions: ReadonlyArray<{ readonly id: string }>
  ) =>
    membership === null
      ? Effect.void
      : auditAll(
          { organizationId: membership.organizationId, author: { kind: "person", id: personId }, action },
          sessions.map(({ id }) => ({ environment: null, id }))
        )

  return { sql, repo, record }
})

type Parts = Effect.Effect.Success<typeof makeParts>

/**
 * Creates a session for a person, recorded in their organization's audit log, and ends their open sign-in links.
 * The token is returned only here. Run it in a transaction that has locked the person's row, as `ensurePerson`
 * does.
 */
const makeCreate = ({ record, repo }: Parts) =>
  Effect.fn("Sessions.create")(function* (personId: string, client: string | null) {
    const token = newToken()
    const id = yield* newId
    yield* repo.endLinks(personId)
    yield* repo.makeRoom(personId)
    yield* repo.insert(id, tokenHash(token), personId, client)
    const [row = yield* Effect.dieMessage("A new session was not found")] = yield* repo.find(id)
    const session = toSession(row)
    yield* record(session, "session.started", [session])
    // The sandbox is selected first, but a person may have been granted production only
    const [only] = session.membership?.environments ?? []
    if (only === undefined || session.membership?.environments.includes(session.environment) === true) {
      return { token, session }
    }
    yield* repo.select(id, only)
    return { token, session: { ...session, environment: only } }
  }, orUnavailable)

const makeAdmission = Effect.fnUntraced(function* ({ repo }: Parts) {
  const search = yield* makeCredentialSearch(repo.existing)

  /** Whether it is the token of a session that has not ended. Concurrent calls share one round trip. */
  const exists = (token: Redacted.Redacted): Effect.Effect<boolean, ServiceUnavailable> =>
    isToken(Redacted.value(token)) ? search(tokenHash(token)) : Effect.succeed(false)

  /**
   * The session of a token, with tokens taken from its rate limit and its organization's, each up to the number asked
   * for, in one round trip. Does not refuse a request that gets no token. Extends the session by 12 hours, up to 30
   * days in total, if the last extension is more than a minute old; `extended` tells whether it did.
   */
  const admit = Effect.fn("Sessions.admit")(function* (
    token: Redacted.Redacted,
    policies: CredentialPolicies,
    tokens: TokensToTake
  ) {
    const [row] = isToken(Redacted.value(token)) ? yield* repo.admit(tokenHash(token), policies, tokens) : []
    if (row === undefined) {
      return yield* new SessionInvalid()
    }
    return { session: toSession(row), extended: row.extended, ...toCredentialLimits(row) }
  }, orUnavailable)

  return { exists, admit }
})

const endings = ({ record, repo, sql }: Parts) => {
  const end = Effect.fn("Sessions.end")(
    (session: Session, id: string) =>
      repo.end(id, session.personId).pipe(
        Effect.tap((ended) => record(session, "session.ended", ended)),
        Effect.map((ended) => ended.length > 0),
        transaction(sql)
      ),
    orUnavailable
  )

  const endAll = Effect.fn("Sessions.endAll")(
    (session: Session) =>
      // The lock keeps a concurrent sign-in of the person out
      repo.lockPerson(session.personId).pipe(
        Effect.zipRight(repo.endLinks(session.personId)),
        Effect.zipRight(repo.endAll(session.personId)),
        Effect.flatMap((ended) => record(session, "session.ended", ended)),
        transaction(sql)
      ),
    orUnavailable
  )

  return { end, endAll }
}

const make = Effect.gen(function* () {
  const parts = yield* makeParts
  const { repo } = parts

  /** The sessions of a person that have not ended, most recently used first: at most 100. */
  const list = Effect.fn("Sessions.list")(repo.list, orUnavailable)

  const selectWorkspace = Effect.fn("Sessions.selectWorkspace")(function* (session: Session, environment: Environment) {
    if (session.membership?.environments.includes(environment) !== true) {
      return yield* new WorkspaceAccessRequired()
    }
    yield* repo.select(session.id, environment)
    return { ...session, environment }
  }, orUnavailable)

  return {
    create: makeCreate(parts),
    ...(yield* makeAdmission(parts)),
    list,
    ...endings(parts),
    selectWorkspace,
    clean: orUnavailable(repo.clean)
  }
})

export class Sessions extends service<Sessions>()("connected-payments/identity/Sessions", make) {}
