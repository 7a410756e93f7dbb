import { Duration, Effect } from "effect"
import type { CellDatabase } from "./CellDatabase.ts"
import { renewFence } from "./Fence.ts"
import { MoveRefused } from "./MoveError.ts"
import { forgetMove, type Move, setPhase } from "./MoveState.ts"
import { releaseDeliveries } from "./Parking.ts"
import { removeOrganization } from "./Removal.ts"
import { type Ends, findReplication } from "./Replication.ts"

/** The steps of a move after the directory says the target: see `Move.ts`. */

/** Records at the source that the organization has moved, so that late requests are answered 503 and repeated. */
export const leaveTombstone = (source: CellDatabase, move: Move) =>
  Effect.zipRight(leave(source, move), setPhase(source, move, "moved"))

const leave = (source: CellDatabase, move: Move) =>
  source.transaction(
    Effect.gen(function* () {
      const { author, organizationId, to } = move
      yield* source.query(
        `INSERT INTO payments.moved_organizations (organization_id, cell, moved_by) VALUES ($1, $2, $3)
        ON CONFLICT (organization_id) DO UPDATE SET cell = excluded.cell, moved_by = excluded.moved_by`,
        [organizationId, to, author]
      )
      yield* source.query(
        `INSERT INTO payments.moved_accounts (environment, account_id, organization_id)
        SELECT environment, account_id, organization_id FROM payments.provider_accounts WHERE organization_id = $1
        ON CONFLICT (environment, account_id) DO UPDATE SET organization_id = excluded.organization_id`,
        [organizationId]
      )
      yield* source.query(
        `WITH people AS (
          SELECT p.id, p.email FROM payments.memberships m JOIN payments.people p ON p.id = m.person_id
          WHERE m.organization_id = $1
        )
        INSERT INTO payments.moved_credentials (hash, organization_id)
        SELECT hash, $1 FROM (
          SELECT key_hash AS hash FROM payments.api_keys WHERE organization_id = $1 AND revoked_at IS NULL
          UNION SELECT token_hash FROM payments.invitations WHERE organization_id = $1
          UNION SELECT token_hash FROM payments.sessions WHERE person_id IN (SELECT id FROM people)
          UNION SELECT token_hash FROM payments.login_tokens WHERE email IN (SELECT email FROM people)
        ) AS known ON CONFLICT (hash) DO UPDATE SET organization_id = excluded.organization_id`,
        [organizationId]
      )
    })
  )

/** How far the target's clock is behind the source's, in milliseconds. */
const clockLag = ({ source, target }: Ends) => {
  const now = (cell: CellDatabase) =>
    Effect.map(
      cell.query<{ now: number }>(`SELECT (date_part('epoch', clock_timestamp()) * 1000)::float8 AS now`),
      ([row]) => row?.now ?? 0
    )
  return Effect.zipWith(now(source), now(target), (here, there) => Math.max(0, here - there), { concurrent: true })
}

/** Lets the target work for the organization. */
export const startTarget = (ends: Ends, move: Move) =>
  Effect.gen(function* () {
    const { target } = ends
    const { author, from, id, organizationId, to } = move
    // What is new there comes after what was moved
    yield* Effect.sleep(Duration.millis(Math.min(10_000, yield* clockLag(ends))))
    yield* target.query(
      `INSERT INTO payments.audit_log
        (organization_id, id, environment, author_kind, author_id, action, target_type, target_id, request_id)
      SELECT $1, $2, NULL, 'operator', $3, 'organization.moved', 'organization', $1::uuid::text, $4
      WHERE EXISTS (SELECT 1 FROM payments.organizations WHERE id = $1)
      ON CONFLICT DO NOTHING`,
      [organizationId, id, author, `${from} to ${to}`]
    )
    yield* forgetMove(target, move)
    yield* releaseDeliveries(target, organizationId)
    // Its workers listen
    yield* target.query(`SELECT pg_notify('connected_payments_deliveries', 'move')`)
  })

/** Removes what the target needed to receive. */
export const cleanTarget = ({ target }: Ends, { organizationId }: Move) =>
  Effect.gen(function* () {
    yield* target.query(`DELETE FROM payments.move_conflicts WHERE organization_id = $1`, [organizationId])
    yield* renewFence(target)
  })

/** Removes the organization from the source. Never while the removal could be replicated. */
export const cleanSource = (ends: Ends, move: Move, onTable: (table: string) => Effect.Effect<void>) =>
  Effect.gen(function* () {
    const { source } = ends
    const found = yield* findReplication(ends, move)
    if (found.publication || found.slot || found.subscription) {
      return yield* new MoveRefused({
        message: "The replication of the move has not ended: nothing was removed. Run the same command again."
      })
    }
    yield* removeOrganization(source, move.organizationId, onTable)
    yield* forgetMove(source, move)
    yield* renewFence(source)
  })
