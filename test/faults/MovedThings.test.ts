import { createHash, randomBytes, randomUUID } from "node:crypto"
import { expect, layer } from "@effect/vitest"
import { Effect, Option, Redacted } from "effect"
import { openCell } from "../../src/cells/move/CellDatabase.ts"
import { rehearseMove } from "../../src/cells/move/Move.ts"
import { dayBefore, storePastDays } from "../cells/AgedHistory.ts"
import { move, remainders, subscribe } from "../cells/MoveScene.ts"
import { type Cell, masterKeys, type Tenant, TwoCells } from "../cells/TwoCells.ts"
import { makeConsumer } from "../harness/Consumer.ts"
import { eventually } from "../harness/Eventually.ts"
import { newEmail } from "../harness/SignIn.ts"
import { createMigratedDatabase } from "../harness/TestDatabase.ts"
import { png } from "../images/Pictures.ts"
import { backdatePartitions } from "../storage/AgedDays.ts"

const events = 2000

/** An open invitation, as its mail has it: the token of its link. */
const invite = (cell: Cell, tenant: Tenant) =>
  Effect.gen(function* () {
    const token = randomBytes(32).toString("base64url")
    const email = newEmail()
    yield* cell.query(
      `INSERT INTO payments.invitations (organization_id, id, email, role, environments, token_hash, expires_at)
      VALUES ($1, gen_random_uuid(), $2, 'developer', '{sandbox}', $3, now() + interval '1 day')`,
      [tenant.id, email, createHash("sha256").update(token).digest()]
    )
    return { email, token }
  })

const accept = (cell: Cell, token: string) => cell.request("POST", "/identity/invitation", { body: { token } })

const uploadTo = (cell: Cell, tenant: Tenant, raw: Uint8Array) =>
  Effect.gen(function* () {
    const answer = yield* cell.request("POST", `/v2/organizations/${tenant.id}/provider/product-images`, {
      key: tenant.key,
      raw,
      headers: { "content-type": "image/png" }
    })
    expect(answer.status, answer.text).toBe(200)
    return new URL(String(answer.json["url"])).pathname
  })

const imageAt = (cell: Cell, path: string) =>
  Effect.promise(async () => {
    const response = await fetch(`${cell.baseUrl}${path}`)
    return { status: response.status, bytes: new Uint8Array(await response.arrayBuffer()) }
  })

layer(TwoCells.layer, { excludeTestServices: true, timeout: "300 seconds" })("a move", (it) => {
  it.scoped(
    "takes along images, an invitation, and a recovery and a replay that have begun",
    () =>
      Effect.gen(function* () {
        const { cells, makeTenant } = yield* TwoCells
        const { north, south } = cells
        for (const statement of backdatePartitions(1)) yield* north.query(statement)
        const tenant = yield* makeTenant("north")
        const consumer = yield* makeConsumer
        const recovered = yield* subscribe(tenant, consumer.url, "Recovered")
        const replayed = yield* subscribe(tenant, consumer.url, "Replayed")
        const payload = JSON.stringify({ id: "svc_evt", type: "payment.succeeded", data: { amount: 1500 } })
        yield* storePastDays(north, tenant.id, { days: 1, perDay: events, payload })
        yield* north.query(
          `UPDATE payments.deliveries SET endpoint_id = $2, state = 'failed', finished_at = now(), attempt_count = 1,
            secret_ids = ARRAY(SELECT s.id FROM payments.endpoint_secrets s WHERE s.endpoint_id = $2)
          WHERE organization_id = $1`,
          [tenant.id, recovered.id]
        )
        const image = png({ shade: 77 })
        const path = yield* uploadTo(north, tenant, image)
        const { email, token } = yield* invite(north, tenant)

        const begin = (endpoint: string, work: "recover" | "replay") =>
          Effect.gen(function* () {
            const answer = yield* north.request(
              "POST",
              `/v2/organizations/${tenant.id}/integrations/endpoints/${endpoint}/${work}`,
              {
                key: tenant.key,
                headers: { "idempotency-key": randomUUID() },
                body: { since: new Date(dayBefore(1)).toISOString() }
              }
            )
            expect(answer.status, answer.text).toBeLessThan(300)
            return String(answer.json["id"])
          })
        const statesIn = (cell: Cell) =>
          cell.query<{ kind: string; state: string; queued: number; skipped: number }>(
            `SELECT 'recovery' AS kind, state, queued::int, skipped::int FROM payments.recoveries WHERE organization_id = $1
            UNION ALL SELECT 'replay', state, queued::int, skipped::int FROM payments.event_replays WHERE organization_id = $1`,
            [tenant.id]
          )
        // They have begun shortly before the fence, and take seconds
        const atFence: Array<{ readonly kind: string; readonly state: string }> = []
        yield* move(tenant.id, "north", "south", (text) =>
          Effect.gen(function* () {
            if (text.startsWith("Comparing")) {
              yield* begin(recovered.id, "recover")
              yield* begin(replayed.id, "replay")
            }
            if (text.startsWith("Writes are refused")) atFence.push(...(yield* statesIn(north)))
          })
        )
        expect(atFence).toMatchObject([
          { kind: "recovery", state: "running" },
          { kind: "replay", state: "running" }
        ])

        expect(yield* imageAt(south, path)).toEqual({ status: 200, bytes: image })

        expect((yield* accept(north, token)).status).toBe(503)
        const accepted = yield* accept(south, token)
        expect(accepted.status, accepted.text).toBe(200)
        expect(accepted.json).toMatchObject({ person: { email }, organization: { id: tenant.id, role: "developer" } })

        const ended = yield* eventually(
          "the end of both",
          Effect.map(statesIn(south), (states) =>
            states.every(({ state }) => state === "finished") ? Option.some(states) : Option.none()
          ),
          120_000
        )
        expect(ended).toMatchObject([
          { kind: "recovery", queued: events, skipped: 0 },
          { kind: "replay", queued: events }
        ])
        const [{ deliveries } = { deliveries: 0 }] = yield* south.query<{ deliveries: number }>(
          `SELECT count(*)::int AS deliveries FROM payments.deliveries
          WHERE organization_id = $1 AND endpoint_id = ANY ($2::uuid[]) AND state <> 'failed'`,
          [tenant.id, [recovered.id, replayed.id]]
        )
        expect(deliveries).toBe(2 * events)
        for (const cell of Object.values(cells)) {
          const left = (yield* remainders(cell)).map(({ name }) => name)
          expect(left).toEqual([])
        }
      }),
    240_000
  )

  it.scoped(
    "is refused if the target could not decrypt what comes, or the source can't replicate",
    () =>
      Effect.gen(function* () {
        const { cells, directory, makeTenant } = yield* TwoCells
        const tenant = yield* makeTenant("north")
        yield* subscribe(tenant, "http://127.0.0.1:9/hook")
        const key = Redacted.make(new Uint8Array(32).fill(8))
        for (const keys of [[{ id: "test", key }], [{ id: "other", key }]] as const) {
          const error = yield* Effect.flip(move(tenant.id, "north", "south", undefined, keys))
          expect(error.message).toContain('under master key "test" can\'t be decrypted with MASTER_KEYS')
        }
        const plain = yield* createMigratedDatabase
        const error = yield* Effect.flip(
          rehearseMove(
            {
              source: yield* openCell("plain", plain.url),
              target: yield* openCell("south", cells.south.url),
              directory,
              masterKeys,
              author: "root",
              onProgress: () => Effect.void
            },
            tenant.id
          )
        )
        expect(error.message).toContain('PostgreSQL of cell "plain" has wal_level = replica. Set wal_level = logical')
        expect(Option.getOrThrow(yield* directory.cellOfOrganization(tenant.id))).toMatchObject({
          cell: "north",
          movingTo: null
        })
        for (const cell of Object.values(cells)) {
          expect(yield* cell.query("SELECT 1 FROM payments.moves WHERE organization_id = $1", [tenant.id])).toEqual([])
        }
      }),
    60_000
  )

  it.scoped(
    "is refused if a role lacks a right, and names each until both have what the guide says",
    () =>
      Effect.gen(function* () {
        const { cells, directory, makeTenant } = yield* TwoCells
        const tenant = yield* makeTenant("north")
        const role = `mover_${randomBytes(6).toString("hex")}`
        const password = randomBytes(12).toString("hex")
        const asRole = (cell: Cell) => {
          const url = new URL(Redacted.value(cell.url))
          url.username = role
          url.password = password
          return Redacted.make(url.href)
        }
        for (const { query } of Object.values(cells)) {
          yield* Effect.acquireRelease(query(`CREATE ROLE ${role} LOGIN PASSWORD '${password}' NOREPLICATION`), () =>
            query(`DROP OWNED BY ${role}; DROP ROLE ${role}`)
          )
          yield* query(`GRANT USAGE ON SCHEMA payments TO ${role}`)
          yield* query(`GRANT SELECT ON ALL TABLES IN SCHEMA payments TO ${role}`)
        }
        const rehearse = Effect.gen(function* () {
          return yield* rehearseMove(
            {
              source: yield* openCell("north", asRole(cells.north)),
              target: yield* openCell("south", asRole(cells.south)),
              directory,
              masterKeys,
              author: "root",
              onProgress: () => Effect.void
            },
            tenant.id
          )
        }).pipe(Effect.scoped)
        const grantCreate = ({ query, url }: Cell) =>
          query(`GRANT CREATE ON DATABASE ${new URL(Redacted.value(url)).pathname.slice(1)} TO ${role}`)
        for (const [refusal, grant] of [
          ['"north" may not replicate', cells.north.query(`ALTER ROLE ${role} REPLICATION`)],
          ['"north" may not create publications in its database: GRANT CREATE ON DATABASE', grantCreate(cells.north)],
          ['"south" may not create subscriptions: GRANT', cells.south.query(`GRANT pg_create_subscription TO ${role}`)],
          ['"south" may not create subscriptions in its database: GRANT CREATE', grantCreate(cells.south)]
        ] as const) {
          expect((yield* Effect.flip(rehearse)).message).toContain(refusal)
          yield* grant
        }
        expect(yield* rehearse).toBeDefined()
      }),
    60_000
  )
})
