import type { SqlError } from "@effect/sql"
import { Effect } from "effect"
import type { ServiceUnavailable } from "../errors/Errors.ts"
import { Batcher } from "../kit/Batcher.ts"
import { maxPermitWaiters, permitRefused, permitTimeoutMillis } from "../kit/BoundedSemaphore.ts"
import { orUnavailable } from "../storage/Database.ts"

/**
 * Finds out which hashes are of credentials, for all that ask at the same time in one statement. A credential that a
 * process sees for the first time may be made up, and nothing tells the two apart but the database: looked up one after
 * the other, a flood of made-up ones would stand before the real ones.
 */

/** How many hashes one statement looks for. */
const maxHashes = 500

/**
 * Creates a search.
 *
 * @param find the hashes among these that are of credentials
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
