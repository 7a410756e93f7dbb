import { Context, Effect, Layer } from "effect"
import { sqlState } from "../../../src/platform/telemetry/ServerErrors.ts"
import { makeProvider } from "../../faults/Provider.ts"
import { Randomness } from "../../faults/Randomness.ts"
import { makeReceiver } from "../../faults/Receiver.ts"
import { type ReplicatedServers, startReplicatedServers } from "../../faults/ReplicatedServers.ts"
import { ask } from "../../harness/Connection.ts"
import { eventuallyDone } from "../../harness/Eventually.ts"
import { expect, layer } from "../../harness/Tests.ts"
import { temporaryDirectory } from "./fixtures/temporaryDirectory.ts"
import { connected, serviceOn } from "./ReplicatedBed.ts"

/** A primary and its replica, for all tests: the last one breaks them. */
class Servers extends Context.Tag("test/Servers")<Servers, ReplicatedServers>() {
  static readonly layer = Layer.scoped(
    Servers,
    Effect.flatMap(temporaryDirectory, (directory) => startReplicatedServers(directory, { synchronous: false }))
  ).pipe(Layer.orDie)
}

/** When the service's reads last asked a server something, in Unix milliseconds. */
const readersOn = (url: string) =>
  Effect.map(
    ask<{ at: Date | null }>(
      url,
      "SELECT max(query_start) AS at FROM pg_stat_activity WHERE application_name = 'connected-payments reads'"
    ),
    ([row]) => row?.at?.getTime() ?? 0
  )

const readsReplica = <A, E, R>({ replica }: ReplicatedServers, effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const before = yield* readersOn(replica.url)
    yield* effect
    return (yield* readersOn(replica.url)) > before
  })

const onReplica = (servers: ReplicatedServers, statement: string) => ask(servers.replica.url, statement)

layer(Servers.layer)("lists with a read replica", (it) => {
  it.scoped("say what has been answered before, whether the replica works, is late or has stopped", function* () {
    const servers = yield* Servers
    const service = yield* serviceOn({ url: servers.url, readUrl: servers.replica.url })
    const endpointId = yield* service.subscribe((yield* makeReceiver(new Randomness(), 5)).url("orders"))
    const provider = makeProvider(service, new Randomness())

    /** What was confirmed a moment ago is in each list. */
    const expectOwnWrites = Effect.gen(function* () {
      yield* provider.notify
      const count = provider.confirmed.size
      for (const list of ["/events", "/deliveries", `/endpoints/${endpointId}/deliveries`]) {
        const { json, status, text } = yield* service.get(`${list}?limit=100`)
        expect([list, status, text]).toEqual([list, 200, text])
        expect([list, Array.isArray(json["data"]) ? json["data"].length : text]).toEqual([list, count])
      }
      expect((yield* service.get("/statistics")).status).toBe(200)
      expect((yield* service.get("/audit-log")).status).toBe(200)
    })
    const usedAgain = eventuallyDone("reads on the replica", readsReplica(servers, service.get("/events")))

    yield* usedAgain
    yield* expectOwnWrites
    // Nothing that decides anything asks it
    expect(yield* readsReplica(servers, service.get("/endpoints"))).toBe(false)

    // Late, always: it would show an event only when the list has been answered long since
    yield* onReplica(servers, "ALTER SYSTEM SET recovery_min_apply_delay = '1s'")
    yield* onReplica(servers, "SELECT pg_reload_conf()")
    yield* Effect.repeatN(expectOwnWrites, 3)
    yield* onReplica(servers, "ALTER SYSTEM RESET recovery_min_apply_delay")
    yield* onReplica(servers, "SELECT pg_reload_conf()")
    yield* usedAgain

    // Not at all, for a while
    yield* onReplica(servers, "SELECT pg_wal_replay_pause()")
    yield* Effect.repeatN(expectOwnWrites, 3)
    yield* onReplica(servers, "SELECT pg_wal_replay_resume()")
    yield* usedAgain
    yield* expectOwnWrites
    expect(service.log.filter(({ text }) => text.includes("The read replica is not used")).length).toBeGreaterThan(1)
  })

  it.scoped(
    "need no more than an ordinary role, change nothing, and stay in the transaction that they are part of",
    function* () {
      const servers = yield* Servers
      yield* ask(servers.primary.url, "CREATE ROLE ordinary LOGIN PASSWORD 'ordinary'")
      yield* ask(servers.primary.url, "CREATE SCHEMA ordinary AUTHORIZATION ordinary")
      yield* servers.caughtUp
      const as = (url: string) => {
        const ordinary = new URL(url)
        ordinary.username = "ordinary"
        ordinary.password = "ordinary"
        return ordinary.href
      }
      const { prefer, sql } = yield* connected(as(servers.primary.url), as(servers.replica.url))
      yield* sql`CREATE TABLE ordinary.notes AS SELECT 1 AS note`
      const isOnStandby = Effect.map(
        sql<{ standby: boolean }>`SELECT pg_is_in_recovery() AS standby FROM ordinary.notes`,
        ([row]) => row?.standby
      )
      expect(yield* prefer(isOnStandby)).toBe(true)
      expect(yield* isOnStandby).toBe(false)
      expect(yield* sql.withTransaction(prefer(isOnStandby))).toBe(false)
      expect(sqlState(yield* Effect.flip(prefer(sql`INSERT INTO ordinary.notes VALUES (2)`)))).toBe("25006")
      expect(yield* sql`SELECT note FROM ordinary.notes`).toEqual([{ note: 1 }])
    }
  )

  it.scoped("are not read on the old primary that a failover has left behind, though its log is longer", function* () {
    const servers = yield* Servers
    yield* ask(servers.primary.url, "CREATE TABLE notes AS SELECT 'both' AS note")
    yield* servers.caughtUp
    yield* servers.fallBehind
    yield* ask(servers.primary.url, "INSERT INTO notes SELECT repeat('lost', 500) FROM generate_series(1, 5000)")
    yield* ask(servers.primary.url, "CHECKPOINT")
    yield* servers.primary.crash
    yield* servers.promote
    yield* servers.leftBehind
    yield* ask(servers.replica.url, "INSERT INTO notes VALUES ('kept')")
    // By the position alone, it would have everything
    const [now] = yield* ask<{ lsn: string }>(servers.replica.url, "SELECT pg_current_wal_lsn()::text AS lsn")
    const isAhead = ask<{ ahead: boolean }>(
      servers.primary.url,
      "SELECT pg_last_wal_replay_lsn() > $1::pg_lsn AS ahead",
      [now?.lsn]
    )
    expect(yield* isAhead).toEqual([{ ahead: true }])
    const { prefer, sql } = yield* connected(servers.replica.url, servers.primary.url)
    expect(yield* prefer(sql<{ note: string }>`SELECT left(note, 4) AS note FROM notes ORDER BY note`)).toEqual([
      { note: "both" },
      { note: "kept" }
    ])
  })
})
