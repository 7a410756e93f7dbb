import { SqlClient } from "@effect/sql"
import { Context, Duration, Effect, Layer } from "effect"
import type { ServiceUnavailable } from "../../platform/errors/Errors.ts"
import { removeOld } from "../../platform/storage/Batches.ts"
import { orUnavailable } from "../../platform/storage/Database.ts"

/** The retention of the audit log (contract 9.6). */
export class AuditRetention extends Context.Tag("connected-payments/identity/AuditRetention")<
  AuditRetention,
  {
    /** Removes records older than the retention, in small batches. */
    readonly clean: Effect.Effect<void, ServiceUnavailable>
  }
>() {
  /** @param options.auditRetention how long a record is kept */
  static readonly layer = (options: {
    readonly auditRetention: Duration.Duration
  }): Layer.Layer<AuditRetention, never, SqlClient.SqlClient> =>
    Layer.effect(AuditRetention, make(options.auditRetention))
}

const make = (auditRetention: Duration.Duration) =>
  Effect.map(SqlClient.SqlClient, (sql) => ({
    clean: removeOld(sql, {
      table: "audit_log",
      key: ["organization_id", "id"],
      old: sql`r.at < now() - ${Duration.toSeconds(auditRetention)} * interval '1 second'`,
      by: "at"
    }).pipe(orUnavailable)
  }))
