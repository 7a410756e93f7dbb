import { createHash, randomBytes } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Redacted } from "effect"
import {
  ApiKeyInvalid,
  ApiKeyLimitReached,
  PermissionDenied,
  type ServiceUnavailable,
  type WorkspaceAccessRequired
} from "../../platform/errors/Errors.ts"
import { makeAudit } from "../../platform/kit/Audit.ts"
import { BoundedMap, monotonicMillis } from "../../platform/kit/Concurrency.ts"
import type { Environment } from "../../platform/kit/Environment.ts"
import { newId, type OrganizationId } from "../../platform/kit/Ids.ts"
import { orUnavailable, transaction } from "../../platform/storage/Database.ts"
import { makeMembersRepo } from "../members/MembersRepo.ts"
import type { Author, PrincipalShape, Tenant } from "../Principal.ts"
import {
  type CredentialLimits,
  type CredentialPolicies,
  makeCredentialSearch,
  type TokensToTake,
  takesNothing,
  toCredentialLimits
} from "./CredentialLimitsStatements.ts"
import { requireMayGrant } from "./GrantPolicy.ts"
import { type KeyRecord, type KeyRow, makeKeysRepo } from "./KeysRepo.ts"
import { expandGrants, type Grant, isGrant, type OwnPermission, OwnPermissions } from "./Permissions.ts"

export interface NewKey {
  readonly organizationId: OrganizationId
  /** 1 to 100 characters. */
  readonly name: string
  /** Those of an embedding team's own must be declared: see `ownPermissions`. */
  readonly permissions: ReadonlyArray<Grant | OwnPermission>
  /** A key created without a mode is a test key (contract 2.3). */
  readonly mode?: "test" | "live"
  readonly expiresAt?: Date
  /** The creator. If a person, the key has no more permissions than they have in the organization. */
  readonly author: Author
}

/** As the table's check requires, prefixes with `_live_` are of production and no others are. */
const forms = {
  test: { prefix: "pk_test_", environment: "sandbox" },
  live: { prefix: "pk_live_", environment: "production" }
} as const

/**
 * The maximum number of API keys per organization, in both environments together. Revoked keys don't count; expired
 * ones do, since they are listed until they are revoked.
 */
export const maxKeys = 100

/** A key has 256 random bits, so a plain hash can't be reversed by guessing. */
const hashOf = (text: string): Buffer => createHash("sha256").update(text).digest()

/** The maximum length of a key: longer values are not even hashed. */
export const maxKeyLength = 256

/** The data that a request's key is looked up by, without the key itself. */
export interface PresentedKey {
  readonly hash: Buffer
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

const maxRemembered = 10_000

interface Remembered {
  readonly principal: PrincipalShape
  readonly until: number
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

const makeParts = Effect.all({
  sql: SqlClient.SqlClient,
  own: OwnPermissions,
  repo: makeKeysRepo,
  audit: makeAudit,
  memberships: makeMembersRepo
})

type Parts = Effect.Effect.Success<typeof makeParts>

const makeCreate = ({ audit, memberships, own, repo, sql }: Parts) => {
  const requireGiver = Effect.fnUntraced(function* (environment: Environment, options: NewKey) {
    if (options.author.kind !== "person") {
      return
    }
    const member = yield* memberships.find(options.organizationId, options.author.id)
    if (member === undefined) {
      return yield* new PermissionDenied({ message: "Only members may create an organization's keys." })
    }
    yield* requireMayGrant(member, environment, options.permissions)
  })

  const create = Effect.fn("Keys.create")(
    function* (options: NewKey) {
      const { author, expiresAt = null, organizationId } = options
      const unknown = options.permissions.filter((name) => !isGrant(name) && !own.has(name))
      if (unknown.length > 0) {
        return yield* new PermissionDenied({ message: `No such permission is declared: ${unknown.join(", ")}.` })
      }
      const { environment, prefix } = forms[options.mode ?? "test"]
      const text = `${prefix}${randomBytes(32).toString("base64url")}`
      const id = yield* newId
      // Creations of the organization's keys wait for each other, and for changes of its members
      yield* memberships.lock(organizationId)
      yield* requireGiver(environment, options)
      if (yield* repo.hasAtLeast(organizationId, maxKeys)) {
        return yield* new ApiKeyLimitReached()
      }
      const inserted = yield* repo.insert({
        ...options,
        id,
        environment,
        prefix,
        expiresAt,
        hash: hashOf(text),
        lastFour: text.slice(-4)
      })
      yield* audit({ organizationId, environment, author, action: "api_key.created", targetId: id })
      const [record = yield* Effect.dieMessage("INSERT … RETURNING answered no row")] = inserted
      return { key: Redacted.make(text), record }
    },
    transaction(sql),
    orUnavailable
  )

  return create
}

/** Looks a key up and takes the tokens; most requests of a busy key take none, and write nothing. */
const makeLookUp = ({ repo }: Parts) => {
  const prepared = new WeakMap<CredentialPolicies, ReturnType<typeof repo.prepared>>()

  const preparedUnder = (policies: CredentialPolicies) => {
    const statements = prepared.get(policies) ?? repo.prepared(policies)
    prepared.set(policies, statements)
    return statements
  }

  return ({ hash }: PresentedKey, policies: CredentialPolicies, tokens: TokensToTake) => {
    const { admit, look } = preparedUnder(policies)
    return takesNothing(tokens)
      ? look([hash])
      : admit([hash, tokens.own, tokens.returned, tokens.organization, tokens.organizationReturned])
  }
}

const makeAdmission = (parts: Parts) => {
  const { audit, repo, sql } = parts
  const lookUp = makeLookUp(parts)
  const remembered = new BoundedMap<Remembered>(maxRemembered)

  /** The number of revocations by this process: a look-up that began before one must not be cached after it. */
  let revocations = 0

  // Runs for every request: without a span, since the statement has one
  const ask = Effect.fnUntraced(function* (key: PresentedKey, policies: CredentialPolicies, tokens: TokensToTake) {
    const startedAt = yield* monotonicMillis
    const revocationsBefore = revocations
    const [row] = yield* lookUp(key, policies, tokens)
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

  const revoke = Effect.fn("Keys.revoke")(function* (tenant: Tenant, id: string, author: Author) {
    const revoked = yield* transaction(sql)(
      Effect.tap(repo.revoke(tenant, id), ({ length }) =>
        length === 0 ? Effect.void : audit({ ...tenant, author, action: "api_key.revoked", targetId: id })
      )
    )
    revocations += 1
    for (const { hash } of revoked) remembered.delete(hash.toString("base64url"))
    return revoked.length > 0
  }, orUnavailable)

  return { admit, revoke }
}

const make = Effect.gen(function* () {
  const parts = yield* makeParts
  const create = makeCreate(parts)
  const admission = makeAdmission(parts)
  const authenticate = Effect.fn("Keys.authenticate")(function* (key: Redacted.Redacted) {
    if (Redacted.value(key).length > maxKeyLength) {
      return yield* new ApiKeyInvalid()
    }
    const presented = presentedKey(Redacted.value(key))
    const [row] = yield* parts.repo.usable(presented.hash)
    return yield* row === undefined ? new ApiKeyInvalid() : toPrincipal(presented, row)
  }, orUnavailable)
  const list = Effect.fn("Keys.list")(parts.repo.list, orUnavailable)
  const touch = (ids: ReadonlyArray<string>) => orUnavailable(Effect.asVoid(parts.repo.touch(ids)))
  const search = yield* makeCredentialSearch(parts.repo.existing)
  const exists: Keys["Type"]["exists"] = ({ hash }) => search(hash)

  return { create, authenticate, admit: admission.admit, exists, list, revoke: admission.revoke, touch }
})

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
    readonly list: (tenant: Tenant) => Effect.Effect<ReadonlyArray<KeyRecord>, ServiceUnavailable>
    /** Revokes a key: at once in this process, within half a second in others. Returns whether it existed. */
    readonly revoke: (tenant: Tenant, id: string, author: Author) => Effect.Effect<boolean, ServiceUnavailable>
    /** Records the time of keys' last use, to the minute; called outside the requests. */
    readonly touch: (ids: ReadonlyArray<string>) => Effect.Effect<void, ServiceUnavailable>
  }
>() {
  static readonly layer: Layer.Layer<Keys, never, SqlClient.SqlClient> = Layer.effect(Keys, make)
}
