import { createHash, randomBytes } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Option, Redacted } from "effect"
import { type ServiceUnavailable, SessionInvalid, WorkspaceAccessRequired } from "../../platform/errors/Errors.ts"
import { type AuditAction, makeAuditAll } from "../../platform/kit/Audit.ts"
import type { Environment } from "../../platform/kit/Environment.ts"
import { newId, type OrganizationId } from "../../platform/kit/Ids.ts"
import { removeOld } from "../../platform/storage/Batches.ts"
import { orUnavailable, transaction } from "../../platform/storage/Database.ts"
import { makeCredentialSearch } from "../CredentialSearch.ts"
import {
  type CredentialLimits,
  type CredentialLimitsRow,
  type CredentialPolicies,
  credentialLimitColumns,
  type TokensToTake,
  takeCredentialTokens,
  toCredentialLimits
} from "../keys/CredentialLimits.ts"
import type { Role, Session } from "../Principal.ts"

/** How many hours a session lasts without a request. */
export const sessionHours = 12

/** The maximum lifetime of a session in days, however much it is used. */
export const sessionDays = 30

/** The maximum number of sessions per person: a new one ends the least recently used. */
export const maxSessions = 100

/** A session as its person sees it in a list: never its token. */
export interface SessionRecord {
  readonly id: string
  readonly environment: Environment
  readonly createdAt: Date
  /** To the minute. */
  readonly lastUsedAt: Date
  readonly expiresAt: Date
  /** The browser and system that signed in, such as `Firefox on Linux`; null if the browser is not known. */
  readonly client: string | null
}

/**
 * The hash under which a one-time or session token is stored: a token has 256 random bits, so a plain hash can't be
 * reversed by guessing.
 */
export const tokenHash = (token: Redacted.Redacted): Buffer =>
  createHash("sha256").update(Redacted.value(token)).digest()

const tokenForm = /^[A-Za-z0-9_-]{43}$/

/** A new token: 32 random bytes as base64url. */
export const newToken = (): Redacted.Redacted => Redacted.make(randomBytes(32).toString("base64url"))

/** Whether a text has the form of a token; anything else is not looked up. */
export const isToken = (text: string): boolean => tokenForm.test(text)

interface SessionRow extends Omit<Session, "membership"> {
  readonly organizationId: OrganizationId | null
  readonly role: Role
  readonly environments: ReadonlyArray<Environment>
}

const toSession = ({ environments, organizationId, role, ...session }: SessionRow): Session => ({
  id: session.id,
  personId: session.personId,
  email: session.email,
  environment: session.environment,
  expiresAt: session.expiresAt,
  membership: organizationId === null ? null : { organizationId, role, environments }
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const auditAll = yield* makeAuditAll

  // A process of the previous version may extend sessions beyond their maximum of days
  const expiresAt = sql.literal(`LEAST(s.expires_at, s.created_at + interval '${sessionDays} days')`)
  const lasts = sql`s.expires_at > now() AND s.created_at > now() - ${sessionDays} * interval '1 day'`

  const columns = sql`
    s.id, s.person_id AS "personId", p.email, s.environment, ${expiresAt} AS "expiresAt",
    m.organization_id AS "organizationId", m.role,
    CASE WHEN m.role IN ('owner', 'admin') THEN ARRAY['sandbox', 'production'] ELSE ARRAY(
      SELECT a.environment FROM payments.workspace_access a
      WHERE a.organization_id = m.organization_id AND a.person_id = m.person_id ORDER BY a.environment DESC
    ) END AS environments`

  const joined = sql.literal(`
    payments.sessions s JOIN payments.people p ON p.id = s.person_id
    LEFT JOIN payments.memberships m ON m.person_id = s.person_id`)

  const find = (id: string) =>
    Effect.map(sql<SessionRow>`SELECT ${columns} FROM ${joined} WHERE s.id = ${id}`, ([row]) =>
      Option.map(Option.fromNullable(row), toSession)
    )

  /**
   * Writes to the audit log of the person's organization, without an environment; without an organization there is no
   * log.
   */
  const record = (
    { membership, personId }: Pick<Session, "membership" | "personId">,
    action: AuditAction,
    ids: ReadonlyArray<string>
  ) =>
    membership === null
      ? Effect.void
      : auditAll(
          { organizationId: membership.organizationId, author: { kind: "person", id: personId }, action },
          ids.map((id) => ({ environment: null, id }))
        )

  const endLinks = (personId: string) => sql`
    UPDATE payments.login_tokens SET used_at = now()
    WHERE email = (SELECT email FROM payments.people WHERE id = ${personId}) AND used_at IS NULL`

  const makeRoom = (personId: string) => sql`
    DELETE FROM payments.sessions WHERE id IN (
      SELECT id FROM payments.sessions WHERE person_id = ${personId}
      ORDER BY last_used_at DESC, id DESC OFFSET ${maxSessions - 1})`

  const create = Effect.fn("Sessions.create")(function* (personId: string, client: string | null) {
    const token = newToken()
    const id = yield* newId
    yield* endLinks(personId)
    yield* makeRoom(personId)
    yield* sql`
      INSERT INTO payments.sessions (id, token_hash, person_id, expires_at, client)
      VALUES (${id}, ${tokenHash(token)}, ${personId}, now() + ${sessionHours} * interval '1 hour', ${client})`
    const session = yield* Effect.orDie(Effect.flatten(find(id).pipe(Effect.orDie)))
    yield* record(session, "session.started", [id])
    // The sandbox is selected first, but a person may have been granted production only
    const [only] = session.membership?.environments ?? []
    if (only === undefined || session.membership?.environments.includes(session.environment) === true) {
      return { token, session }
    }
    yield* sql`UPDATE payments.sessions SET environment = ${only} WHERE id = ${id}`
    return { token, session: { ...session, environment: only } }
  }, orUnavailable)

  const search = yield* makeCredentialSearch(
    (hashes) => sql`
      SELECT s.token_hash AS hash FROM payments.sessions s WHERE s.token_hash = ANY(${hashes}::bytea[]) AND ${lasts}`
  )

  const exists: Sessions["Type"]["exists"] = (token) =>
    isToken(Redacted.value(token)) ? search(tokenHash(token)) : Effect.succeed(false)

  const admit = Effect.fn("Sessions.admit")(function* (
    token: Redacted.Redacted,
    policies: CredentialPolicies,
    tokens: TokensToTake
  ) {
    if (!isToken(Redacted.value(token))) {
      return yield* new SessionInvalid()
    }
    const [row] = yield* sql<SessionRow & CredentialLimitsRow & { readonly extended: boolean }>`
      WITH caller AS MATERIALIZED (
        SELECT ${columns} FROM ${joined} WHERE s.token_hash = ${tokenHash(token)} AND ${lasts}
      ), extension AS (
        UPDATE payments.sessions s SET last_used_at = now(),
          expires_at = LEAST(now() + ${sessionHours} * interval '1 hour',
            s.created_at + ${sessionDays} * interval '1 day')
        -- Whether it lasts is asked again, of the row as it is once it is locked: what was ended meanwhile stays ended
        WHERE s.id = (SELECT id FROM caller) AND ${lasts} AND (s.last_used_at < now() - interval '1 minute'
          OR s.expires_at < LEAST(now() + ${sessionHours} * interval '1 hour' - interval '1 minute',
            s.created_at + ${sessionDays} * interval '1 day'))
        RETURNING s.expires_at
      ), ${takeCredentialTokens(sql, "session", policies, {
        own: sql`${tokens.own}`,
        returned: sql`${tokens.returned}`,
        organization: sql`${tokens.organization}`,
        organizationReturned: sql`${tokens.organizationReturned}`
      })}
      SELECT caller.*, ${credentialLimitColumns(sql)}, extension.expires_at IS NOT NULL AS extended,
        COALESCE(extension.expires_at, caller."expiresAt") AS "expiresAt"
      FROM caller LEFT JOIN own ON true LEFT JOIN shared ON true LEFT JOIN extension ON true`
    if (row === undefined) {
      return yield* new SessionInvalid()
    }
    const session = toSession(row)
    return { session, extended: row.extended, ...toCredentialLimits(row) }
  }, orUnavailable)

  const list = Effect.fn("Sessions.list")(function* (personId: string) {
    return yield* sql<SessionRecord>`
      SELECT s.id, s.environment, s.created_at AS "createdAt", date_trunc('minute', s.last_used_at) AS "lastUsedAt",
        ${expiresAt} AS "expiresAt", s.client
      FROM payments.sessions s WHERE s.person_id = ${personId} AND ${lasts}
      ORDER BY s.last_used_at DESC, s.id DESC LIMIT ${maxSessions}`
  }, orUnavailable)

  const end = Effect.fn("Sessions.end")(function* (session: Session, id: string) {
    return yield* transaction(sql)(
      Effect.gen(function* () {
        const ended = yield* sql`
          DELETE FROM payments.sessions WHERE id = ${id} AND person_id = ${session.personId} RETURNING 1`
        yield* record(session, "session.ended", ended.length === 0 ? [] : [id])
        return ended.length > 0
      })
    )
  }, orUnavailable)

  const endAll = Effect.fn("Sessions.endAll")(function* (session: Session) {
    yield* transaction(sql)(
      Effect.gen(function* () {
        // The lock keeps a concurrent sign-in of the person out
        yield* sql`SELECT 1 FROM payments.people WHERE id = ${session.personId} FOR NO KEY UPDATE`
        yield* endLinks(session.personId)
        const ended = yield* sql<{ readonly id: string }>`
          DELETE FROM payments.sessions WHERE person_id = ${session.personId} RETURNING id`
        yield* record(
          session,
          "session.ended",
          ended.map(({ id }) => id)
        )
      })
    )
  }, orUnavailable)

  const selectWorkspace = Effect.fn("Sessions.selectWorkspace")(function* (session: Session, environment: Environment) {
    if (session.membership?.environments.includes(environment) !== true) {
      return yield* new WorkspaceAccessRequired()
    }
    yield* sql`UPDATE payments.sessions SET environment = ${environment} WHERE id = ${session.id}`
    return { ...session, environment }
  }, orUnavailable)

  const clean = removeOld(sql, {
    table: "sessions",
    key: ["id"],
    old: sql`r.expires_at < now()`,
    by: "expires_at"
  }).pipe(orUnavailable)

  return { create, admit, exists, list, end, endAll, selectWorkspace, clean }
})

export class Sessions extends Context.Tag("connected-payments/identity/Sessions")<
  Sessions,
  {
    /**
     * Creates a session for a person, recorded in their organization's audit log, and ends their open sign-in links.
     * The token is returned only here. Run it in a transaction that has locked the person's row, as `ensurePerson`
     * does.
     */
    readonly create: (
      personId: string,
      client: string | null
    ) => Effect.Effect<{ readonly token: Redacted.Redacted; readonly session: Session }, ServiceUnavailable>
    /**
     * The session of a token, with tokens taken from its rate limit and its organization's, each up to the number asked
     * for, in one round trip. Does not refuse a request that gets no token. Extends the session by 12 hours, up to 30
     * days in total, if the last extension is more than a minute old; `extended` tells whether it did.
     */
    readonly admit: (
      token: Redacted.Redacted,
      policies: CredentialPolicies,
      tokens: TokensToTake
    ) => Effect.Effect<
      CredentialLimits & { readonly session: Session; readonly extended: boolean },
      SessionInvalid | ServiceUnavailable
    >
    /** Whether it is the token of a session that has not ended. Concurrent calls share one round trip. */
    readonly exists: (token: Redacted.Redacted) => Effect.Effect<boolean, ServiceUnavailable>
    /** The sessions of a person that have not ended, most recently used first: at most `maxSessions`. */
    readonly list: (personId: string) => Effect.Effect<ReadonlyArray<SessionRecord>, ServiceUnavailable>
    /** Ends one of a person's sessions, the current one or another; returns whether it existed. */
    readonly end: (session: Session, id: string) => Effect.Effect<boolean, ServiceUnavailable>
    /** Ends all of a person's sessions, including the current one, and their open sign-in links. */
    readonly endAll: (session: Session) => Effect.Effect<void, ServiceUnavailable>
    readonly selectWorkspace: (
      session: Session,
      environment: Environment
    ) => Effect.Effect<Session, WorkspaceAccessRequired | ServiceUnavailable>
    /** Removes sessions that have ended. */
    readonly clean: Effect.Effect<void, ServiceUnavailable>
  }
>() {
  static readonly layer: Layer.Layer<Sessions, never, SqlClient.SqlClient> = Layer.effect(Sessions, make)
}
