import { createHash, randomBytes } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Option, Redacted } from "effect"
import { ApiKeyInvalid, type ServiceUnavailable } from "../Errors.ts"
import { newId, type OrganizationId } from "../kit/Ids.ts"
import type { Environment } from "../Settings.ts"
import { orUnavailable } from "../storage/Database.ts"
import { expandGrants, type Grant } from "./Permissions.ts"
import type { PrincipalShape } from "./Principal.ts"

/** An API key as it is stored and shown: never the key itself (contract, Authentication). */
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
  readonly expiresAt: Date | null
}

/** What a new key is made of. */
export interface NewKey {
  readonly organizationId: OrganizationId
  /** 1 to 100 characters. */
  readonly name: string
  readonly permissions: ReadonlyArray<Grant>
  /** A key created without a mode is a test key (contract, Authentication, rule 3). */
  readonly mode?: "test" | "live"
  readonly expiresAt?: Date
}

const prefixes = { test: "pk_test_", live: "pk_live_" } as const

/** The environment that a key's form selects: `_live_` in the prefix means production, every other form the sandbox. */
export const keyEnvironment = (key: string): Environment => (/^[a-z]+_live_/.test(key) ? "production" : "sandbox")

/** What is stored of a key and looked up: it has 256 random bits, so a plain hash can't be guessed back. */
export const keyHash = (key: Redacted.Redacted): Buffer => createHash("sha256").update(Redacted.value(key)).digest()

/** Longer values are no keys: they are not even hashed. */
const maxKeyLength = 256

/** API keys of organizations. */
export class Keys extends Context.Tag("connected-payments/identity/Keys")<
  Keys,
  {
    /** Makes a key: its prefix, then 32 random bytes as base64url. The key itself is in this answer only. */
    readonly create: (
      options: NewKey
    ) => Effect.Effect<{ readonly record: KeyRecord; readonly key: Redacted.Redacted }, ServiceUnavailable>
    /** The caller that a key stands for. One answer for unknown, revoked and expired keys. One round trip. */
    readonly authenticate: (key: Redacted.Redacted) => Effect.Effect<PrincipalShape, ApiKeyInvalid | ServiceUnavailable>
  }
>() {
  static readonly layer: Layer.Layer<Keys, never, SqlClient.SqlClient> = Layer.effect(
    Keys,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const create = Effect.fn("Keys.create")(function* (options: NewKey) {
        const prefix = prefixes[options.mode ?? "test"]
        const text = `${prefix}${randomBytes(32).toString("base64url")}`
        const key = Redacted.make(text)
        const record = {
          id: yield* newId,
          organizationId: options.organizationId,
          environment: keyEnvironment(text),
          name: options.name,
          prefix,
          lastFour: text.slice(-4),
          permissions: options.permissions,
          expiresAt: options.expiresAt ?? null
        }
        const rows = yield* sql<{ createdAt: Date }>`
          INSERT INTO payments.api_keys
            (id, organization_id, environment, name, key_hash, key_prefix, last_four, permissions, expires_at)
          VALUES (${record.id}, ${record.organizationId}, ${record.environment}, ${record.name}, ${keyHash(key)},
            ${prefix}, ${record.lastFour}, ${record.permissions}::text[], ${record.expiresAt})
          RETURNING created_at AS "createdAt"`
        const createdAt = rows[0]?.createdAt
        return createdAt === undefined
          ? yield* Effect.dieMessage("INSERT … RETURNING answered no row")
          : { key, record: { ...record, createdAt } }
      }, orUnavailable)

      const find = (key: Redacted.Redacted) => sql<{
        readonly id: string
        readonly organizationId: OrganizationId
        readonly environment: Environment
        readonly permissions: ReadonlyArray<Grant>
      }>`
        SELECT id, organization_id AS "organizationId", environment, permissions
        FROM payments.api_keys
        WHERE key_hash = ${keyHash(key)} AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())`

      const authenticate = Effect.fn("Keys.authenticate")(function* (key: Redacted.Redacted) {
        const text = Redacted.value(key)
        if (text.length > maxKeyLength) {
          return yield* new ApiKeyInvalid()
        }
        const row = Option.fromNullable((yield* find(key))[0])
        // The row says the environment; a key whose form says another is not taken, whatever the row holds
        if (Option.isNone(row) || row.value.environment !== keyEnvironment(text)) {
          return yield* new ApiKeyInvalid()
        }
        const { environment, id, organizationId, permissions } = row.value
        return {
          organizationId,
          environment,
          permissions: expandGrants(permissions),
          author: { kind: "api_key" as const, id }
        }
      }, orUnavailable)

      return { create, authenticate }
    })
  )
}
