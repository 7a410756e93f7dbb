import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import type { Encrypted } from "./Cipher.ts"

export const makeKeyedHashRepo = Effect.map(SqlClient.SqlClient, (sql) => ({
  find: (name: string) => sql<Encrypted>`
    SELECT master_key_id AS "masterKeyId", ciphertext FROM payments.installation_keys WHERE name = ${name}`,

  insert: (name: string, { ciphertext, masterKeyId }: Encrypted) => sql`
    INSERT INTO payments.installation_keys (name, master_key_id, ciphertext)
    VALUES (${name}, ${masterKeyId}, ${ciphertext}) ON CONFLICT (name) DO NOTHING`
}))
