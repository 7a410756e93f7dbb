import { createHash, randomBytes } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Option, Redacted } from "effect"
import { type ServiceUnavailable, SessionInvalid, WorkspaceAccessRequired } from "../Errors.ts"
import { newId, type OrganizationId } from "../kit/Ids.ts"
import type { Environment } from "../Settings.ts"
import { orUnavailable } from "../storage/Database.ts"
import {
  type CredentialLimits,
  type CredentialLimitsRow,
  type CredentialPolicies,
  credentialLimitColumns,
  takeCredentialTokens,
  toCredentialLimits
} from "./CredentialLimits.ts"
import type { Role } from "./Principal.ts"

/** A person's place in their organization. */
export interface Membership {
  readonly organizationId: OrganizationId
  readonly role: Role
  /** The environments whose workspaces the person may enter: all for owners and admins, else those granted. */
  readonly environments: ReadonlyArray<Environment>
}

/** A signed-in person. */
export interface Session {
  readonly id: string
  readonly personId: string
  readonly email: string
  /** The selected workspace's environment. */
  readonly environment: Environment
  readonly expiresAt: Date
  /** Null for a person without an organization yet. */
  readonly membership: Membership | null
}

/** How long a session lasts without a request. */
export const sessionHours = 12

/** What is stored of a one-time or session token: 256 random bits, so a plain hash can't be guessed back. */
export const tokenHash = (token: Redacted.Redacted): Buffer =>
  createHash("sha256").update(Redacted.value(token)).digest()

/** 32 random bytes as base64url. */
export const newToken = (): Redacted.Redacted => Redacted.make(randomBytes(32).toString("base64url"))

const tokenForm = /^[A-Za-z0-9_-]{43}$/

/** Whether a text has the form of a token: anything else is not even looked up. */
export const isToken = (text: string): boolean => tokenForm.test(text)

/** Sessions of signed-in people. */
export class Sessions extends Context.Tag("connected-payments/identity/Sessions")<
  Sessions,
  {
    /** Begins a session for a person; the token is in this answer only. */
    readonly create: (
      personId: string
    ) => Effect.Effect<{ readonly token: Redacted.Redacted; readonly session: Session }, ServiceUnavailable>
    /**
     * The session of a token, with a token taken from its rate limit and up to `organizationTokens` from its
     * organization's, in one round trip. Refuses nothing for want of them. Extends the session by its 12 hours when the
     * last extension is more than a minute old; `extended` says so.
     */
    readonly admit: (
      token: Redacted.Redacted,
      policies: CredentialPolicies,
      organizationTokens: number
    ) => Effect.Effect<
      CredentialLimits & { readonly session: Session; readonly extended: boolean },
      SessionInvalid | ServiceUnavailable
    >
    readonly end: (sessionId: string) => Effect.Effect<void, ServiceUnavailable>
    /** Selects the workspace that the session works in from now on. */
    readonly selectWorkspace: (
      session: Session,
      environment: Environment
    ) => Effect.Effect<Session, WorkspaceAccessRequired | ServiceUnavailable>
    /** Removes sessions that have ended. */
    readonly clean: Effect.Effect<void, ServiceUnavailable>
  }
>() {
  static readonly layer: Layer.Layer<Sessions, never, SqlClient.SqlClient> = Layer.effect(
    Sessions,
    Effect.map(SqlClient.SqlClient, makeSessions)
  )
}

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

function makeSessions(sql: SqlClient.SqlClient): Sessions["Type"] {
  const columns = sql.literal(`
    s.id, s.person_id AS "personId", p.email, s.environment, s.expires_at AS "expiresAt",
    m.organization_id AS "organizationId", m.role,
    CASE WHEN m.role IN ('owner', 'admin') THEN ARRAY['sandbox', 'production'] ELSE ARRAY(
      SELECT a.environment FROM payments.workspace_access a
      WHERE a.organization_id = m.organization_id AND a.person_id = m.person_id ORDER BY a.environment DESC
    ) END AS environments`)

  const joined = sql.literal(`
    payments.sessions s JOIN payments.people p ON p.id = s.person_id
    LEFT JOIN payments.memberships m ON m.person_id = s.person_id`)

  const find = (id: string) =>
    Effect.map(sql<SessionRow>`SELECT ${columns} FROM ${joined} WHERE s.id = ${id}`, ([row]) =>
      Option.map(Option.fromNullable(row), toSession)
    )

  const create = Effect.fn("Sessions.create")(function* (personId: string) {
    const token = newToken()
    const id = yield* newId
    yield* sql`
      INSERT INTO payments.sessions (id, token_hash, person_id, expires_at)
      VALUES (${id}, ${tokenHash(token)}, ${personId}, now() + ${sessionHours} * interval '1 hour')`
    const session = yield* Effect.orDie(Effect.flatten(find(id).pipe(Effect.orDie)))
    // The sandbox is selected first, but a person may have been granted production alone
    const [only] = session.membership?.environments ?? []
    if (only === undefined || session.membership?.environments.includes(session.environment) === true) {
      return { token, session }
    }
    yield* sql`UPDATE payments.sessions SET environment = ${only} WHERE id = ${id}`
    return { token, session: { ...session, environment: only } }
  }, orUnavailable)

  const admit = Effect.fn("Sessions.admit")(function* (
    token: Redacted.Redacted,
    policies: CredentialPolicies,
    organizationTokens: number
  ) {
    if (!isToken(Redacted.value(token))) {
      return yield* new SessionInvalid()
    }
    const [row] = yield* sql<SessionRow & CredentialLimitsRow & { readonly extended: boolean }>`
      WITH caller AS MATERIALIZED (
        SELECT ${columns} FROM ${joined} WHERE s.token_hash = ${tokenHash(token)} AND s.expires_at > now()
      ), extension AS (
        UPDATE payments.sessions SET expires_at = now() + ${sessionHours} * interval '1 hour'
        WHERE id = (SELECT id FROM caller)
          AND expires_at < now() + ${sessionHours} * interval '1 hour' - interval '1 minute'
        RETURNING expires_at
      ), ${takeCredentialTokens(sql, "session", policies, sql`${organizationTokens}`)}
      SELECT caller.*, ${credentialLimitColumns(sql)}, extension.expires_at IS NOT NULL AS extended,
        COALESCE(extension.expires_at, caller."expiresAt") AS "expiresAt"
      FROM caller CROSS JOIN own LEFT JOIN shared ON true LEFT JOIN extension ON true`
    if (row === undefined) {
      return yield* new SessionInvalid()
    }
    return { session: toSession(row), extended: row.extended, ...toCredentialLimits(row) }
  }, orUnavailable)

  const end = Effect.fn("Sessions.end")(function* (sessionId: string) {
    yield* sql`DELETE FROM payments.sessions WHERE id = ${sessionId}`
  }, orUnavailable)

  const selectWorkspace = Effect.fn("Sessions.selectWorkspace")(function* (session: Session, environment: Environment) {
    if (session.membership?.environments.includes(environment) !== true) {
      return yield* new WorkspaceAccessRequired()
    }
    yield* sql`UPDATE payments.sessions SET environment = ${environment} WHERE id = ${session.id}`
    return { ...session, environment }
  }, orUnavailable)

  const clean = sql`DELETE FROM payments.sessions WHERE expires_at < now()`.pipe(Effect.asVoid, orUnavailable)

  return { create, admit, end, selectWorkspace, clean }
}
