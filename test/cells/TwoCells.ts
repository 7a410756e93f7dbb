import { appendFile } from "node:fs/promises"
import { join } from "node:path"
import { Context, Effect, Layer, Option, Redacted } from "effect"
import { Directory } from "../../src/cells/Directory.ts"
import { directoryLayer } from "../../src/cells/DirectoryLive.ts"
import { migrateDirectory } from "../../src/cells/DirectoryMigrations.ts"
import type { OrganizationId } from "../../src/kit/Ids.ts"
import { databaseLayer } from "../../src/storage/Database.ts"
import { startEmbeddedPostgres } from "../../src/storage/EmbeddedPostgres.ts"
import { connectionTo } from "../harness/Connection.ts"
import { createTestDatabase } from "../harness/TestDatabase.ts"
import { testReturnUrls } from "../harness/TestService.ts"
import { makeOrganization, startService } from "../http/StartedService.ts"
import { signature } from "../inbound/Notifications.ts"
import { dataDirectory } from "../storage/EmbeddedHarness.ts"

/** Two cells on PostgreSQL servers of their own, with the directory beside them. */

export type CellName = "north" | "south"

const webhookSecret = "whsec_cells"

/** The key that both cells encrypt under. */
export const masterKeys = [{ id: "test", key: Redacted.make(new Uint8Array(32).fill(7)) }] as const
export const masterKeySetting = `test:${Buffer.alloc(32, 7).toString("base64")}`

/** A PostgreSQL that can be moved from. */
const startDatabase = Effect.gen(function* () {
  const directory = yield* dataDirectory
  yield* Effect.promise(() =>
    appendFile(
      join(directory, "cluster", "postgresql.auto.conf"),
      "wal_level = logical\nmax_replication_slots = 20\nmax_wal_senders = 20\nwal_receiver_status_interval = 1s\n"
    )
  )
  return (yield* startEmbeddedPostgres({ directory, durable: false })).url
})

const startCell = (name: CellName, url: Redacted.Redacted, directoryUrl: Redacted.Redacted) =>
  Effect.gen(function* () {
    const client = yield* connectionTo(url)
    const service = yield* startService({
      databaseUrl: url,
      cell: { name, directoryUrl },
      provider: {
        sandbox: Option.some({
          secretKey: Redacted.make("sk_test_cells"),
          webhookSecrets: [Redacted.make(webhookSecret)]
        }),
        production: Option.none(),
        apiUrl: Option.some(new URL("http://127.0.0.1:9")),
        ...testReturnUrls
      },
      settings: { roles: { api: true, worker: true } }
    })
    return {
      ...service,
      url,
      query: <Row extends object>(text: string, values: ReadonlyArray<unknown> = []) =>
        Effect.promise(async () => (await client.query<Row>(text, [...values])).rows as ReadonlyArray<Row>)
    }
  })

export type Cell = Effect.Effect.Success<ReturnType<typeof startCell>>

/** An organization in a cell. */
export interface Tenant {
  readonly id: OrganizationId
  readonly key: string
  readonly accountId: string
}

const make = Effect.gen(function* () {
  const [north, south] = yield* Effect.all([startDatabase, startDatabase], { concurrency: 2 })
  const { url: directoryUrl } = yield* createTestDatabase()
  const directoryServices = yield* Layer.build(
    directoryLayer.pipe(
      Layer.provide(Layer.effectDiscard(migrateDirectory)),
      Layer.provide(databaseLayer({ url: directoryUrl, poolSize: 5 }))
    )
  )
  const directory = Context.get(directoryServices, Directory)
  const register = (name: CellName, url: string) => directory.putCell({ name, url, home: name === "north" })
  const start = (name: CellName, url: Redacted.Redacted) =>
    Effect.gen(function* () {
      // Before it starts: a process requires that the directory knows its cell
      yield* register(name, "http://127.0.0.1:9")
      const cell = yield* startCell(name, url, directoryUrl)
      yield* register(name, cell.baseUrl)
      return cell
    })
  const cells: Readonly<Record<CellName, Cell>> = {
    north: yield* start("north", north),
    south: yield* start("south", south)
  }

  const makeTenant = (name: CellName) =>
    Effect.gen(function* () {
      const cell = cells[name]
      const { id, key } = yield* makeOrganization(cell.services, { name: `tenant-${crypto.randomUUID()}` })
      const accountId = `acct_${crypto.randomUUID().replaceAll("-", "")}`
      yield* cell.query(
        `INSERT INTO payments.provider_accounts (organization_id, environment, account_id, status, had_payments_before)
        VALUES ($1, 'sandbox', $2, 'connected', true)`,
        [id, accountId]
      )
      const claiming = directory.claimingFor(name)
      yield* claiming.claimOrganization(id)
      yield* claiming.claimAccount({ organizationId: id, environment: "sandbox" }, accountId)
      return { id, key, accountId } satisfies Tenant
    }).pipe(Effect.orDie)

  /** Where the directory says that an organization is: what a router does. */
  const cellOf = (id: OrganizationId) =>
    directory.cellOfOrganization(id).pipe(
      Effect.map(Option.match({ onNone: () => "north" as const, onSome: ({ cell }) => cell as CellName })),
      Effect.map((name) => cells[name]),
      Effect.orDie
    )

  /** One notification to a cell: its status. */
  const notifyAt = (cell: Cell, body: string) =>
    Effect.map(
      cell.request("POST", "/webhooks/provider", {
        raw: body,
        headers: { "stripe-signature": signature(body, { secret: webhookSecret }) }
      }),
      ({ status }) => status
    )

  return { cells, directory, directoryUrl, makeTenant, cellOf, notifyAt }
})

/** Both cells and the directory. */
export class TwoCells extends Context.Tag("test/TwoCells")<TwoCells, Effect.Effect.Success<typeof make>>() {
  static readonly layer = Layer.scoped(TwoCells, make).pipe(Layer.orDie)
}
