import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { type AuditEntry, makeAudit } from "../../src/kit/Audit.ts"
import { OrganizationId } from "../../src/kit/Ids.ts"
import { RequestId } from "../../src/kit/Request.ts"
import { transaction } from "../../src/storage/Database.ts"
import { onSharedService, TestService } from "../harness/TestService.ts"

const entryOf = (organizationId: OrganizationId): AuditEntry => ({
  organizationId,
  environment: "sandbox",
  author: { kind: "person", id: "person-1" },
  action: "endpoint.created",
  targetType: "endpoint",
  targetId: randomUUID()
})

const auditOn = (sql: SqlClient.SqlClient) => Effect.provideService(makeAudit, SqlClient.SqlClient, sql)

const recordsOf = ({ targetId }: AuditEntry) =>
  Effect.flatMap(
    TestService,
    ({ sql }) => sql<Record<string, unknown>>`SELECT * FROM payments.audit_log WHERE target_id = ${targetId}`
  )

onSharedService("an audit record", (it) => {
  it.effect("says who did what to which object, when and under which request", () =>
    Effect.gen(function* () {
      const { organization, sql } = yield* TestService
      const audit = yield* auditOn(sql)
      const entry = entryOf(organization.id)
      const before = Date.now()
      yield* audit(entry).pipe(Effect.provideService(RequestId, "req_1"))
      const [record, ...others] = yield* recordsOf(entry)
      expect(others).toEqual([])
      expect(record).toMatchObject({
        organization_id: organization.id,
        environment: "sandbox",
        author_kind: "person",
        author_id: "person-1",
        action: "endpoint.created",
        target_type: "endpoint",
        target_id: entry.targetId,
        request_id: "req_1"
      })
      const at = Number(record?.["at"])
      expect(at).toBeGreaterThan(before - 5000)
      expect(at).toBeLessThan(Date.now() + 5000)
    })
  )

  it.effect("of the organization as a whole names no environment", () =>
    Effect.gen(function* () {
      const { organization, sql } = yield* TestService
      const audit = yield* auditOn(sql)
      const entry = { ...entryOf(organization.id), environment: null }
      yield* audit(entry)
      expect((yield* recordsOf(entry))[0]).toMatchObject({ environment: null })
    })
  )

  it.effect("goes with the transaction of its change, forth and back", () =>
    Effect.gen(function* () {
      const { organization, sql } = yield* TestService
      const audit = yield* auditOn(sql)
      const [undone, done] = [entryOf(organization.id), entryOf(organization.id)]
      yield* transaction(sql)(Effect.zipRight(audit(undone), Effect.fail("changed my mind"))).pipe(Effect.flip)
      yield* transaction(sql)(audit(done))
      expect(yield* recordsOf(undone)).toEqual([])
      expect(yield* recordsOf(done)).toHaveLength(1)
    })
  )

  it.effect("that can't be written is an error, which undoes the change with it", () =>
    Effect.gen(function* () {
      const { organization, sql } = yield* TestService
      const audit = yield* auditOn(sql)
      const nobody = entryOf(OrganizationId.make(randomUUID()))
      const name = `Renamed ${randomUUID()}`
      const change = sql`UPDATE payments.organizations SET name = ${name} WHERE id = ${organization.id}`
      const error = yield* Effect.flip(transaction(sql)(Effect.zipRight(change, audit(nobody))))
      expect(error._tag).toBe("SqlError")
      expect(yield* sql`SELECT 1 FROM payments.organizations WHERE name = ${name}`).toEqual([])
    })
  )

  it.effect("is ordered by its id, as by its time", () =>
    Effect.gen(function* () {
      const { organization, sql } = yield* TestService
      const audit = yield* auditOn(sql)
      const entries = Array.from({ length: 30 }, () => entryOf(organization.id))
      yield* Effect.forEach(entries, audit)
      const rows = yield* sql<{ target: string }>`
        SELECT target_id AS target FROM payments.audit_log
        WHERE organization_id = ${organization.id} AND target_id IN ${sql.in(entries.map(({ targetId }) => targetId))}
        ORDER BY id`
      expect(rows.map(({ target }) => target)).toEqual(entries.map(({ targetId }) => targetId))
    })
  )
})
