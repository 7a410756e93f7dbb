import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

export const requests = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // Token buckets; `granted`: the tokens that the last request took. Unlogged: a database crash empties the table,
  // which refills every bucket. Half-filled pages keep the row of a busy bucket in place
  yield* sql`
    CREATE UNLOGGED TABLE payments.rate_limits (
      bucket text COLLATE "C" PRIMARY KEY,
      tokens double precision NOT NULL,
      allowed boolean NOT NULL,
      refilled_at timestamptz NOT NULL,
      granted double precision NOT NULL DEFAULT 1
    ) WITH (fillfactor = 50)`

  // The response is encrypted: it can contain a signing secret
  yield* sql`
    CREATE TABLE payments.idempotency_keys (
      organization_id uuid NOT NULL,
      environment text COLLATE "C" NOT NULL,
      key text COLLATE "C" NOT NULL,
      operation text NOT NULL,
      request_hash bytea NOT NULL CHECK (length(request_hash) = 32),
      lease uuid NOT NULL,
      locked_until timestamptz,
      status smallint,
      master_key_id text,
      answer bytea,
      created_at timestamptz NOT NULL DEFAULT now(),
      -- The last try was refused without an effect: the key is free for other parameters
      free boolean NOT NULL DEFAULT false,
      -- Nobody knows whether a try before the last one had its effect: the key stays with its parameters
      uncertain boolean NOT NULL DEFAULT false,
      -- Tries that were refused: each has keys of its own at the provider
      refusals integer NOT NULL DEFAULT 0,
      PRIMARY KEY (organization_id, environment, key),
      FOREIGN KEY (organization_id, environment) REFERENCES payments.workspaces,
      -- Running until there is an answer
      CHECK ((locked_until IS NULL) = (answer IS NOT NULL)),
      CHECK ((status IS NULL) = (answer IS NULL) AND (master_key_id IS NULL) = (answer IS NULL))
    )`
  yield* sql`CREATE INDEX idempotency_keys_age ON payments.idempotency_keys (created_at)`

  // Random keys of the installation, encrypted under a master key: see `src/platform/kit/crypto/KeyedHash.ts`
  yield* sql`
    CREATE TABLE payments.installation_keys (
      name text COLLATE "C" PRIMARY KEY,
      master_key_id text NOT NULL,
      ciphertext bytea NOT NULL,
      created_at timestamptz NOT NULL DEFAULT now()
    )`

  // Which process last ran each kind of housekeeping, and when that run began: see `src/platform/kit/Housekeeping.ts`
  yield* sql`
    CREATE TABLE payments.housekeeping (
      name text COLLATE "C" PRIMARY KEY,
      process uuid NOT NULL,
      begun_at timestamptz NOT NULL DEFAULT now()
    ) WITH (fillfactor = 50)`
})
