/**
 * Loaded before the service: its connections wait 90 seconds for a server that says nothing, so that what comes sooner has not
 * waited for one. The watch alone, which is there to notice that, is as it is.
 */
import pg from "pg"

const timeouts = { query_timeout: 90_000, statement_timeout: 90_000 }

pg.Client = class extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    const isOthers = typeof config === "object" && config.application_name?.endsWith(" watch") === false
    super(isOthers ? { ...config, ...timeouts } : config)
  }
}

// Where the service's own clients were there before
pg.Pool = class extends pg.Pool {
  constructor(options?: pg.PoolConfig) {
    super({ ...options, ...timeouts })
  }
}
