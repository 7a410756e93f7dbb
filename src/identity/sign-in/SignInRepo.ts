import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import type { Environment } from "../../platform/kit/Environment.ts"
import type { OrganizationId } from "../../platform/kit/Ids.ts"
import { removeOld } from "../../platform/storage/Batches.ts"
import {
  type CredentialLimitsRow,
  type CredentialPolicies,
  credentialLimitColumns,
  type TokensToTake,
  takeCredentialTokens
} from "../keys/CredentialLimitsStatements.ts"
import { enteredEnvironments } from "../members/MembersRepo.ts"
import type { Role, Session } from "../Principal.ts"
import type { SessionShown, SignInPreview } from "./Api.ts"

/** How many hours a session lasts without a request. */
export const sessionHours = 12

const sessionDays = 30

/** The maximum number of sessions per person: a new one ends the least recently used. */
const maxSessions = 100

/** A session as its person sees it in a list: never its token. */
export type SessionRecord = Omit<typeof SessionShown.Type, "current">

export interface SessionRow extends Omit<Session, "membership"> {
  readonly organizationId: OrganizationId | null
  readonly role: Role
  readonly environments: ReadonlyArray<Environment>
}

const people = (sql: SqlClient.SqlClient) => ({
  isKnown: (email: string) => sql`SELECT 1 FROM payments.people WHERE email = ${email.toLowerCase()}`,

  lockPerson: (id: string) => sql`SELECT 1 FROM payments.people WHERE id = ${id} FOR NO KEY UPDATE`
})

const linkStatements = (sql: SqlClient.SqlClient) => {
  const isOpen = sql.literal("used_at IS NULL AND expires_at > now()")

  return {
    insertLink: (hash: Buffer, email: string, minutes: number) => sql`
      INSERT INTO payments.login_tokens (token_hash, email, expires_at)
      VALUES (${hash}, ${email}, now() + ${minutes} * interval '1 minute')`,

    findLink: (hash: Buffer) => sql<typeof SignInPreview.Type>`
      SELECT email, expires_at AS "expiresAt" FROM payments.login_tokens WHERE token_hash = ${hash} AND ${isOpen}`,

    useLink: (hash: Buffer) => sql`
      UPDATE payments.login_tokens SET used_at = now() WHERE token_hash = ${hash} AND ${isOpen} RETURNING 1`,

    endLinks: (personId: string) => sql`
      UPDATE payments.login_tokens SET used_at = now()
      WHERE email = (SELECT email FROM payments.people WHERE id = ${personId}) AND used_at IS NULL`,

    cleanLinks: removeOld(sql, {
      table: "login_tokens",
      key: ["token_hash"],
      old: sql`r.expires_at < now()`,
      by: "expires_at"
    })
  }
}

const sessionReads = (sql: SqlClient.SqlClient) => {
  const expiresAt = sql.literal(`LEAST(s.expires_at, s.created_at + interval '${sessionDays} days')`)
  const lasts = sql`s.expires_at > now() AND s.created_at > now() - ${sessionDays} * interval '1 day'`
  const sessions = sql`
    SELECT s.id, s.person_id AS "personId", p.email, s.environment, ${expiresAt} AS "expiresAt",
      m.organization_id AS "organizationId", m.role, ${sql.literal(enteredEnvironments)} AS environments
    FROM payments.sessions s JOIN payments.people p ON p.id = s.person_id
      LEFT JOIN payments.memberships m ON m.person_id = s.person_id`

  return {
    find: (id: string) => sql<SessionRow>`${sessions} WHERE s.id = ${id}`,

    existing: (hashes: ReadonlyArray<Buffer>) => sql<{ readonly hash: Buffer }>`
      SELECT s.token_hash AS hash FROM payments.sessions s WHERE s.token_hash = ANY(${hashes}::bytea[]) AND ${lasts}`,

    admit: (hash: Buffer, policies: CredentialPolicies, tokens: TokensToTake) => sql<
      SessionRow & CredentialLimitsRow & { readonly extended: boolean }
    >`
      WITH caller AS MATERIALIZED (${sessions} WHERE s.token_hash = ${hash} AND ${lasts}), extension AS (
        UPDATE payments.sessions s SET last_used_at = now(),
          expires_at = LEAST(now() + ${sessionHours} * interval '1 hour',
            s.created_at + ${sessionDays} * interval '1 day')
        -- Checks again whether the session lasts, once its row is locked: it may have been ended meanwhile
        WHERE s.id = (SELECT id FROM caller) AND ${lasts} AND (s.last_used_at < now() - interval '1 minute'
          OR s.expires_at < LEAST(now() + ${sessionHours} * interval '1 hour' - interval '1 minute',
            s.created_at + ${sessionDays} * interval '1 day'))
        RETURNING s.expires_at
      ), ${takeCredentialTokens(sql, "session", policies, tokens)}
      SELECT caller.*, ${credentialLimitColumns(sql)}, extension.expires_at IS NOT NULL AS extended,
        COALESCE(extension.expires_at, caller."expiresAt") AS "expiresAt"
      FROM caller LEFT JOIN own ON true LEFT JOIN shared ON true LEFT JOIN extension ON true`,

    list: (personId: string) => sql<SessionRecord>`
      SELECT s.id, s.environment, s.created_at AS "createdAt", date_trunc('minute', s.last_used_at) AS "lastUsedAt",
        ${expiresAt} AS "expiresAt", s.client
      FROM payments.sessions s WHERE s.person_id = ${personId} AND ${lasts}
      ORDER BY s.last_used_at DESC, s.id DESC LIMIT ${maxSessions}`
  }
}

const sessionChanges = (sql: SqlClient.SqlClient) => ({
  makeRoom: (personId: string) => sql`
      DELETE FROM payments.sessions WHERE id IN (
        SELECT id FROM payments.sessions WHERE person_id = ${personId}
        ORDER BY last_used_at DESC, id DESC OFFSET ${maxSessions - 1})`,

  insert: (id: string, hash: Buffer, personId: string, client: string | null) => sql`
      INSERT INTO payments.sessions (id, token_hash, person_id, expires_at, client)
      VALUES (${id}, ${hash}, ${personId}, now() + ${sessionHours} * interval '1 hour', ${client})`,

  select: (id: string, environment: Environment) =>
    sql`UPDATE payments.sessions SET environment = ${environment} WHERE id = ${id}`,

  end: (id: string, personId: string) => sql<{ readonly id: string }>`
      DELETE FROM payments.sessions WHERE id = ${id} AND person_id = ${personId} RETURNING id`,

  endAll: (personId: string) => sql<{ readonly id: string }>`
      DELETE FROM payments.sessions WHERE person_id = ${personId} RETURNING id`,

  clean: removeOld(sql, { table: "sessions", key: ["id"], old: sql`r.expires_at < now()`, by: "expires_at" })
})

/** The statements on sign-in links and sessions. Both are known by the hashes of their tokens. */
export const makeSignInRepo = Effect.map(SqlClient.SqlClient, (sql) => ({
  ...people(sql),
  ...linkStatements(sql),
  ...sessionReads(sql),
  ...sessionChanges(sql)
}))
