import { createHash, randomBytes } from "node:crypto"
import { SqlClient, type Statement } from "@effect/sql"
import { Context, Effect, Layer, Redacted } from "effect"
import {
  ApiKeyInvalid,
  ApiKeyLimitReached,
  PermissionDenied,
  type ServiceUnavailable,
  type WorkspaceAccessRequired
} from "../../platform/errors/Errors.ts"
import { monotonicMillis } from "../../platform/fibers/Monotonic.ts"
import { makeAudit } from "../../platform/kit/Audit.ts"
import { BoundedMap } from "../../platform/kit/BoundedMap.ts"
import type { Environment } from "../../platform/kit/Environment.ts"
import { newId, type OrganizationId } from "../../platform/kit/Ids.ts"
import { orUnavailable, transaction } from "../../platform/storage/Database.ts"
import { makePreparing, parametersOf } from "../../platform/storage/Statements.ts"
import { makeCredentialSearch } from "../CredentialSearch.ts"
import { makeMemberships } from "../members/MembershipsRepo.ts"
import type { Author, PrincipalShape, Tenant } from "../Principal.ts"
import {
  type CredentialLimits,
  type CredentialLimitsRow,
  type CredentialPolicies,
  credentialLimitColumns,
  type TokensToTake,
  takeCredentialTokens,
  takesNothing,
  toCredentialLimits
} from "./CredentialLimits.ts"
import { requireMayGrant } from "./GrantPolicy.ts"
import { expandGrants, type Grant } from "./Permissions.ts"

/** An API key as it is stored and shown: never the key itself (contract 2.1). */
export interface KeyRecord {
  readonly id: string
  readonly organizationId: OrganizationId
  readonly environment: Environment
  readonly name: string
  /** `pk_test_` or `pk_live_`. */
  readonly prefix: string
  readonly lastFour: string
  readonly permissions: ReadonlyArray<Grant>
  readonly createdAt: Date
  /** Null if it was created before this was recorded. */
  readonly createdBy: Author | null
  readonly expiresAt: Date | null
  /** To the minute; null if it was never used. */
  readonly lastUsedAt: Date | null
}

export interface NewKey {
  readonly organizationId: OrganizationId
  /** 1 to 100 characters. */
  readonly name: string
  readonly permissions: ReadonlyArray<Grant>
  /** A key created without a mode is a test key (contract 2.3). */
  readonly mode?: "test" | "live"
  readonly expiresAt?: Date
  /** The creator. If a person, the key has no more permissions than they have in the organization. */
  readonly author: Author
}

/**
 * The prefixes of new keys. Prefixes with `_live_` are of production and no others are, as the table's check requires.
 */
const forms = {
  test: { prefix: "pk_test_", environment: "sandbox" },
  live: { prefix: "pk_live_", environment: "production" }
} as const

/**
 * The maximum number of API keys per organization, in both environments together. Revoked keys don't count; expired
 * ones do, since they are listed until they are revoked.
 */
export const maxKeys = 100

/**
 * The hash of a key, which is stored and looked up: a key has 256 random bits, so a plain hash can't be reversed by
 * guessing.
 */
export const keyHash = (key: Redacted.Redacted): Buffer => hashOf(Redacted.value(key))

const hashOf = (text: string): Buffer => createHash("sha256").update(text).digest()

/** The maximum length of a key: longer values are not even hashed. */
export const maxKeyLength = 256

/** The needed data of a request's key, without the key itself. */
export interface PresentedKey {
  readonly hash: Buffer
  /** The hash as base64url. */
  readonly hashText: string
  readonly startsWith: (prefix: string) => boolean
}

/** A key as a request carries it; at most `maxKeyLength` characters. */
export const presentedKey = (text: string): PresentedKey => {
  const hash = hashOf(text)
  return { hash, hashText: hash.toString("base64url"), startsWith: (prefix) => text.startsWith(prefix) }
}

/**
 * How long a busy key's look-up is cached, in milliseconds. A key revoked by another process must stop working within a
 * second (contract 2.1), and the look-up itself takes time.
 */
const rememberedMillis = 500

/** The maximum number of cached look-ups per process. */
const maxRemembered = 10_000

interface Remembered {
  readonly principal: PrincipalShape
  readonly until: number
}

interface KeyRow {
  readonly id: string
  readonly organizationId: OrganizationId
  readonly environment: Environment
  readonly prefix: string
  readonly permissions: ReadonlyArray<Grant>
  /** Milliseconds until it expires; null if it does not. */
  readonly expiresIn: number | null
}

/**
 * The caller for a key's row. The row has the environment, which the table's check ties to the recorded prefix; a key
 * that does not begin with that prefix is refused.
 */
const toPrincipal = (key: PresentedKey, row: KeyRow): Effect.Effect<PrincipalShape, ApiKeyInvalid> =>
  !key.startsWith(row.prefix)
    ? new ApiKeyInvalid()
    : Effect.succeed({
        organizationId: row.organizationId,
        environment: row.environment,
        permissions: expandGrants(row.permissions),
        author: { kind: "api_key", id: row.id }
      })

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const prepare = yield* makePreparing
  const audit = yield* makeAudit
  const memberships = yield* makeMemberships

  const columns = sql.literal(`
    id, organization_id AS "organizationId", environment, name, key_prefix AS prefix, last_four AS "lastFour",
    permissions, created_at AS "createdAt", expires_at AS "expiresAt", last_used_at AS "lastUsedAt",
    CASE WHEN created_by_id IS NOT NULL THEN json_build_object('kind', created_by_kind, 'id', created_by_id) END
      AS "createdBy"`)

  const isUsable = sql`revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())`

  const usable = (hash: Buffer | Statement.Fragment) => sql`
    SELECT id, organization_id AS "organizationId", environment, key_prefix AS prefix, permissions,
      (extract(epoch FROM expires_at - now()) * 1000)::float8 AS "expiresIn"
    FROM payments.api_keys
    WHERE key_hash = ${hash} AND ${isUsable}`

  const search = yield* makeCredentialSearch(
    (hashes) => sql`
      SELECT key_hash AS hash FROM payments.api_keys WHERE key_hash = ANY(${hashes}::bytea[]) AND ${isUsable}`
  )

  /** Fails if the organization has `maxKeys` keys. Run in the new key's transaction, under the organization's lock. */
  const requireRoom = Effect.fnUntraced(function* (organizationId: OrganizationId) {
    const beyond = yield* sql`
      SELECT 1 FROM payments.api_keys WHERE organization_id = ${organizationId} AND revoked_at IS NULL
      OFFSET ${maxKeys - 1} LIMIT 1`
    if (beyond.length > 0) {
      return yield* new ApiKeyLimitReached()
    }
  })

  /** Requires that a person may still grant the key's permissions; other authors act for the operator. */
  const requireGiver = Effect.fnUntraced(function* ({ environment, organizationId }: Tenant, options: NewKey) {
    if (options.author.kind !== "person") {
      return
    }
    const member = yield* memberships.find(organizationId, options.author.id)
    if (member === undefined) {
      return yield* new PermissionDenied({ message: "Only members may create an organization's keys." })
    }
    yield* requireMayGrant(member, environment, options.permissions)
  })

  const create = Effect.fn("Keys.create")(function* (options: NewKey) {
    const { environment, prefix } = forms[options.mode ?? "test"]
    const text = `${prefix}${randomBytes(32).toString("base64url")}`
    const key = Redacted.make(text)
    const id = yield* newId
    const tenant = { organizationId: options.organizationId, environment }
    const insert = sql<KeyRecord>`
      INSERT INTO payments.api_keys
        (id, organization_id, environment, name, key_hash, key_prefix, last_four, permissions, expires_at,
          created_by_kind, created_by_id)
      VALUES (${id}, ${tenant.organizationId}, ${tenant.environment}, ${options.name}, ${keyHash(key)}, ${prefix},
        ${text.slice(-4)}, ${options.permissions}::text[], ${options.expiresAt ?? null},
        ${options.author.kind}, ${options.author.id})
      RETURNING ${columns}`
    const [record] = yield* transaction(sql)(
      Effect.gen(function* () {
        // Creations of the organization's keys wait for each other, and for changes of its members
        yield* memberships.lock(options.organizationId)
        yield* requireGiver(tenant, options)
        yield* requireRoom(options.organizationId)
        const inserted = yield* insert
        yield* audit({ ...tenant, author: options.author, action: "api_key.created", targetId: id })
        return inserted
      })
    )
    return record === undefined ? yield* Effect.dieMessage("INSERT … RETURNING answered no row") : { key, record }
  }, orUnavailable)

  const authenticate = Effect.fn("Keys.authenticate")(function* (key: Redacted.Redacted) {
    if (Redacted.value(key).length > maxKeyLength) {
      return yield* new ApiKeyInvalid()
    }
    const presented = presentedKey(Redacted.value(key))
    const [row] = yield* sql<KeyRow>`${usable(presented.hash)}`
    if (row === undefined) {
      return yield* new ApiKeyInvalid()
    }
    return yield* toPrincipal(presented, row)
  }, orUnavailable)

  /** The statements of `admit`, prepared once: requests differ only in the hash and the numbers of tokens. */
  const admission = (policies: CredentialPolicies) => {
    const parameters = parametersOf(sql, ["hash", "own", "returned", "organization", "organizationReturned"])
    const take = prepare<KeyRow & CredentialLimitsRow>(sql`
      WITH caller AS MATERIALIZED (${usable(parameters.hash)}),
        ${takeCredentialTokens(sql, "key", policies, parameters)}
      SELECT caller.*, ${credentialLimitColumns(sql)}
      FROM caller LEFT JOIN own ON true LEFT JOIN shared ON true`)
    // Most requests of a busy key take nothing, and write nothing
    const look = prepare<KeyRow & Partial<CredentialLimitsRow>>(usable(parameters.hash))
    return ({ hash }: PresentedKey, tokens: TokensToTake) =>
      takesNothing(tokens)
        ? look([hash])
        : take([hash, tokens.own, tokens.returned, tokens.organization, tokens.organizationReturned])
  }
  const admissions = new WeakMap<CredentialPolicies, ReturnType<typeof admission>>()
  const admissionUnder = (policies: CredentialPolicies) => {
    const known = admissions.get(policies)
    if (known !== undefined) {
      return known
    }
    const made = admission(policies)
    admissions.set(policies, made)
    return made
  }

  const remembered = new BoundedMap<Remembered>(maxRemembered)
  /** The number of revocations by this process: a look-up that began before one must not be cached after it. */
  let revocations = 0

  // Runs for every request: without a span, since the statement has one
  const ask = Effect.fnUntraced(function* (key: PresentedKey, policies: CredentialPolicies, tokens: TokensToTake) {
    const startedAt = yield* monotonicMillis
    const revocationsBefore = revocations
    const [row] = yield* admissionUnder(policies)(key, tokens)
    if (row === undefined) {
      remembered.delete(key.hashText)
      return yield* new ApiKeyInvalid()
    }
    const principal = yield* toPrincipal(key, row)
    if (revocations === revocationsBefore) {
      const until = startedAt + Math.min(rememberedMillis, row.expiresIn ?? rememberedMillis)
      remembered.set(key.hashText, { principal, until })
    }
    return { principal, ...toCredentialLimits(row) }
  }, orUnavailable)

  const admit: Keys["Type"]["admit"] = (key, policies, tokens) =>
    Effect.flatMap(monotonicMillis, (now) => {
      const known = takesNothing(tokens) ? remembered.get(key.hashText) : undefined
      return known !== undefined && now < known.until
        ? Effect.succeed({
            principal: known.principal,
            organizationId: known.principal.organizationId,
            own: null,
            organization: null
          })
        : ask(key, policies, tokens)
    })

  const list = Effect.fn("Keys.list")(function* (tenant: Tenant) {
    return yield* sql<KeyRecord>`
      SELECT ${columns} FROM payments.api_keys
      WHERE organization_id = ${tenant.organizationId} AND environment = ${tenant.environment} AND revoked_at IS NULL
      ORDER BY id DESC`
  }, orUnavailable)

  const revoke = Effect.fn("Keys.revoke")(function* (tenant: Tenant, id: string, author: Author) {
    const revoked = yield* transaction(sql)(
      Effect.gen(function* () {
        const rows = yield* sql<{ readonly hash: Buffer }>`
          UPDATE payments.api_keys SET revoked_at = now()
          WHERE organization_id = ${tenant.organizationId} AND environment = ${tenant.environment} AND id = ${id}
            AND revoked_at IS NULL
          RETURNING key_hash AS hash`
        if (rows.length > 0) {
          yield* audit({ ...tenant, author, action: "api_key.revoked", targetId: id })
        }
        return rows
      })
    )
    revocations += 1
    for (const { hash } of revoked) remembered.delete(hash.toString("base64url"))
    return revoked.length > 0
  }, orUnavailable)

  const touch = (ids: ReadonlyArray<string>) =>
    sql`
      UPDATE payments.api_keys SET last_used_at = date_trunc('minute', now())
      WHERE id = ANY (${ids}::uuid[]) AND (last_used_at IS NULL OR last_used_at < date_trunc('minute', now()))`.pipe(
      Effect.asVoid,
      orUnavailable
    )

  const exists: Keys["Type"]["exists"] = ({ hash }) => search(hash)

  return { create, authenticate, admit, exists, list, revoke, touch }
})

/** API keys of organizations. */
export class Keys extends Context.Tag("connected-payments/identity/Keys")<
  Keys,
  {
    /**
     * Creates a key: its prefix and 32 random bytes as base64url. The key itself is returned only here. An organization
     * has at most `maxKeys` unrevoked keys, also under concurrency. The creator's permissions are checked in the
     * transaction, so that no key is created after their removal.
     */
    readonly create: (
      options: NewKey
    ) => Effect.Effect<
      { readonly record: KeyRecord; readonly key: Redacted.Redacted },
      ApiKeyLimitReached | PermissionDenied | WorkspaceAccessRequired | ServiceUnavailable
    >
    /** The caller of a key, in one round trip. Unknown, revoked and expired keys get the same refusal. */
    readonly authenticate: (key: Redacted.Redacted) => Effect.Effect<PrincipalShape, ApiKeyInvalid | ServiceUnavailable>
    /**
     * `authenticate`, which also takes tokens from the key's rate limit and its organization's in the same round trip,
     * each up to the number asked for. Does not refuse a request that gets no token. If no token is asked for, the
     * answer may be up to half a second old: the requests of a busy key then cost no round trip.
     */
    readonly admit: (
      key: PresentedKey,
      policies: CredentialPolicies,
      tokens: TokensToTake
    ) => Effect.Effect<CredentialLimits & { readonly principal: PrincipalShape }, ApiKeyInvalid | ServiceUnavailable>
    /** Whether it is a key that is neither revoked nor expired. Concurrent calls share one round trip. */
    readonly exists: (key: PresentedKey) => Effect.Effect<boolean, ServiceUnavailable>
    /** The tenant's unrevoked keys, newest first. */
    readonly list: (tenant: Tenant) => Effect.Effect<ReadonlyArray<KeyRecord>, ServiceUnavailable>
    /** Revokes a key: at once in this process, within half a second in others. Returns whether it existed. */
    readonly revoke: (tenant: Tenant, id: string, author: Author) => Effect.Effect<boolean, ServiceUnavailable>
    /** Records the time of keys' last use, to the minute; called outside the requests. */
    readonly touch: (ids: ReadonlyArray<string>) => Effect.Effect<void, ServiceUnavailable>
  }
>() {
  static readonly layer: Layer.Layer<Keys, never, SqlClient.SqlClient> = Layer.effect(Keys, make)
}
