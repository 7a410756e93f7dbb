/**
 * Loaded before the service: connections of its pools wait 90 seconds for a server that says nothing, so that what comes
 * sooner has not waited for one. What the service watches a server on is left as it is.
 */
import pg from "pg"

pg.Pool = class extends pg.Pool {
  constructor(options?: pg.PoolConfig) {
    super({ ...options, query_timeout: 90_000, statement_timeout: 90_000 })
  }
}
