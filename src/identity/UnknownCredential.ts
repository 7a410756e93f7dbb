import { SqlClient, type SqlError } from "@effect/sql"
import { Effect } from "effect"
import { Claims } from "../cells/Claims.ts"

/** See `makeRefuseUnknownCredential`. */
export type RefuseUnknownCredential = <E>(hash: Buffer, invalid: () => E) => Effect.Effect<never, E | SqlError.SqlError>

/**
 * Refuses a credential that is not known here, given its SHA-256: with 503 if it belongs to an organization that has moved
 * to another cell, so that its holder does not take it for invalid, and otherwise with the given error. Only refusals ask
 * this, and only in a cell.
 */
export const makeRefuseUnknownCredential: Effect.Effect<RefuseUnknownCredential, never, SqlClient.SqlClient | Claims> =
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { cell } = yield* Claims
    return (hash, invalid) =>
      cell === null
        ? Effect.failSync(invalid)
        : Effect.zipRight(sql`SELECT payments.refuse_moved_credential(${hash})`, Effect.failSync(invalid))
  })
