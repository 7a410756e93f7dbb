import type { SqlError } from "@effect/sql"
import { Effect } from "effect"
import type { ServiceUnavailable } from "../platform/errors/Errors.ts"
import { Batcher } from "../platform/kit/Batcher.ts"
import { maxPermitWaiters, permitRefused, permitTimeoutMillis } from "../platform/kit/BoundedSemaphore.ts"
import { orUnavailable } from "../platform/storage/Database.ts"

/**
 * Finds out which hashes belong to credentials, in one statement for all concurrent callers. A credential that a
 * process sees for the first time may be made up, and only the database can tell: looked up one by one, a flood of
 * made-up ones would queue ahead of the real ones.
 */

const maxHashes = 500

/**
 * Creates a search.
 *
 * @param find returns the hashes that belong to credentials
 */
export const makeCredentialSearch = (
  find: (hashes: ReadonlyArray<Buffer>) => Effect.Effect<ReadonlyArray<{ readonly hash: Buffer }>, SqlError.SqlError>
): Effect.Effect<(hash: Buffer) => Effect.Effect<boolean, ServiceUnavailable>> =>
  Effect.map(
    Batcher.make<Buffer, boolean, ServiceUnavailable>({
      run: (hashes) =>
        Effect.map(orUnavailable(find(hashes)), (rows) => {
          const found = new Set(rows.map(({ hash }) => hash.toString("base64url")))
          return hashes.map((hash) => found.has(hash.toString("base64url")))
        }),
      keyOf: (hash) => hash.toString("base64url"),
      concurrency: 1,
      maxBatch: maxHashes,
      interval: () => 0,
      patience: { millis: permitTimeoutMillis, error: permitRefused },
      maxWaiting: maxPermitWaiters,
      isOfOne: () => false
    }),
    ({ submit }) =>
      (hash) =>
        // The statement itself may take longer than a request should wait
        Effect.timeoutFail(submit(hash), { duration: permitTimeoutMillis, onTimeout: permitRefused })
  )
