import { SqlClient } from "@effect/sql"
import { expect } from "@effect/vitest"
import { Context, Duration, Effect, Layer, Option } from "effect"
import { serviceHousekeepingLayer } from "../src/app/Service.ts"
import { Sessions } from "../src/identity/sign-in/Sessions.ts"
import { eventually } from "./harness/Eventually.ts"
import { onService, TestService } from "./harness/TestService.ts"

onService({ roles: { api: true, worker: false } })("housekeeping", (it) => {
  it.scoped("removes what has outlived its time at the start, and nothing else", function* () {
    const { organization, services, sql } = yield* TestService
    const [person] = yield* sql<{ id: string }>`SELECT person_id AS id FROM payments.memberships LIMIT 1`
    const sessions = Context.get(services, Sessions)
    const ended = yield* sessions.create(person?.id ?? "", null)
    const current = yield* sessions.create(person?.id ?? "", null)
    yield* sql`UPDATE payments.sessions SET expires_at = now() - interval '1 second' WHERE id = ${ended.session.id}`
    yield* sql`
        INSERT INTO payments.login_tokens (token_hash, email, expires_at) VALUES
          (sha256('old'), 'a@example.com', now() - interval '1 second'),
          (sha256('new'), 'a@example.com', now() + interval '1 minute')`
    const keyMade = (key: string, age: string) => sql`
        INSERT INTO payments.idempotency_keys
          (organization_id, environment, key, operation, request_hash, lease, locked_until, created_at)
        VALUES (${organization.id}, 'sandbox', ${key}, 'x', sha256(${key}::bytea), gen_random_uuid(), now(),
          now() - ${age}::interval)`
    yield* keyMade("old-key-1", "24 hours 1 second")
    yield* keyMade("new-key-1", "23 hours")
    yield* sql`
        INSERT INTO payments.rate_limits (bucket, tokens, allowed, refilled_at)
        VALUES ('old', 1, true, now() - interval '61 minutes'), ('new', 1, true, now())`
    yield* Layer.build(
      Layer.provide(serviceHousekeepingLayer({ settings: { auditRetention: Duration.days(730) } }), [
        Layer.succeedContext(services),
        Layer.succeed(SqlClient.SqlClient, sql)
      ])
    )
    const left = yield* eventually(
      "the removal",
      Effect.map(
        sql<{ what: string }>`
            SELECT id::text AS what FROM payments.sessions
            UNION ALL SELECT encode(token_hash, 'hex') FROM payments.login_tokens
            UNION ALL SELECT key FROM payments.idempotency_keys
            UNION ALL SELECT bucket FROM payments.rate_limits WHERE bucket IN ('old', 'new')`,
        (rows) => (rows.length <= 4 ? Option.some(rows.map(({ what }) => what)) : Option.none())
      )
    )
    expect(left).toContain(current.session.id)
    expect(left).toContain("new-key-1")
    expect(left).toContain("new")
    expect(left).toHaveLength(4)
  })
})
