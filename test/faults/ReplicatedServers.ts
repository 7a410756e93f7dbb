import { appendFile, chmod, mkdir, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Logger, LogLevel } from "effect"
import { copyCluster } from "../harness/Cluster.ts"
import { ask } from "../harness/Connection.ts"
import { eventuallyDone } from "../harness/Eventually.ts"
import { placeCluster } from "../harness/TestDatabase.ts"
import { startDatabaseServer } from "./DatabaseServer.ts"

export type ReplicatedServers = Effect.Effect.Success<ReturnType<typeof startReplicatedServers>>

/** A cluster with the schema: stopped, in `directory`/postgres. */
const clusterIn = Effect.fnUntraced(function* (directory: string) {
  yield* Effect.promise(async () => {
    await mkdir(directory)
    // The server may run under another account, which must be able to pass
    await chmod(directory, 0o711)
  })
  yield* placeCluster(join(directory, "postgres"))
})

/** What makes a stopped copy of the primary's cluster a standby that follows it. */
const followPrimary = (cluster: string, primaryUrl: string) =>
  Effect.promise(async () => {
    const { hostname, password, port, username } = new URL(primaryUrl)
    const conninfo = `host=${hostname} port=${port} user=${username} password=${decodeURIComponent(password)} application_name=replica`
    await appendFile(join(cluster, "postgresql.auto.conf"), `primary_conninfo = '${conninfo}'\n`)
    await writeFile(join(cluster, "standby.signal"), "")
    await rm(join(cluster, "postmaster.pid"), { force: true })
  })

/**
 * Starts both in `directory`; they end with the scope.
 *
 * @param options.synchronous whether a commit waits for the replica to have it on its disk
 */
export const startReplicatedServers = Effect.fnUntraced(function* (
  directory: string,
  { synchronous }: { readonly synchronous: boolean }
) {
  const [one, two] = [join(directory, "one"), join(directory, "two")]
  yield* clusterIn(one)
  yield* Effect.promise(async () => {
    await mkdir(two)
    await chmod(two, 0o711)
  })
  yield* copyCluster(join(one, "postgres"), join(two, "postgres"))
  const primary = yield* startDatabaseServer(one)
  yield* followPrimary(join(two, "postgres", "cluster"), primary.url)
  const replica = yield* startDatabaseServer(two)
  const onPrimary = ask<{ done: boolean }>
  const follows = synchronous ? "sync_state = 'sync'" : "true"
  if (synchronous) {
    yield* ask(primary.url, "ALTER SYSTEM SET synchronous_standby_names = 'replica'")
    yield* ask(primary.url, "SELECT pg_reload_conf()")
  }
  yield* eventuallyDone(
    "the replica",
    Effect.map(
      onPrimary(
        primary.url,
        `SELECT count(*) = 1 AS done FROM pg_stat_replication WHERE state = 'streaming' AND ${follows}`
      ),
      ([row]) => row?.done === true
    )
  )

  let isPromoted = false
  const promote = Effect.zipRight(
    ask(replica.url, "SELECT pg_promote()"),
    Effect.sync(() => {
      isPromoted = true
    })
  )
  const caughtUp = Effect.gen(function* () {
    const [position] = yield* ask<{ lsn: string }>(primary.url, "SELECT pg_current_wal_flush_lsn()::text AS lsn")
    yield* eventuallyDone(
      "the replica to catch up",
      Effect.map(
        ask<{ done: boolean }>(replica.url, "SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn AS done", [position?.lsn]),
        ([row]) => row?.done === true
      )
    )
  })
  const fallBehind = Effect.gen(function* () {
    yield* ask(replica.url, "ALTER SYSTEM SET primary_conninfo = ''")
    yield* ask(replica.url, "SELECT pg_reload_conf()")
    yield* eventuallyDone(
      "the end of replication",
      Effect.map(ask(primary.url, "SELECT FROM pg_stat_replication"), (rows) => rows.length === 0)
    )
  })
  const leftBehind = Effect.zipRight(
    Effect.promise(() => writeFile(join(one, "postgres", "cluster", "standby.signal"), "")),
    Effect.orDie(primary.start)
  )
  const both = new URL(primary.url)
  return {
    primary,
    replica,
    /** Names both servers, the replica first: nothing may depend on the order. */
    url: primary.url.replace(both.host, `127.0.0.1:${replica.port},${both.host}`),
    /** Makes the replica the primary. The old one has to be gone, or frozen. */
    promote,
    /** Asks whichever server is the primary by now. */
    query: <Row extends object>(text: string, values?: ReadonlyArray<unknown>) =>
      Effect.suspend(() => ask<Row>(isPromoted ? replica.url : primary.url, text, values)),
    /** The replica hears no more of the primary, which goes on. */
    fallBehind,
    /** Starts the old primary again, after it was killed: as a standby that follows nobody, with all that it had. */
    leftBehind,
    /** Waits until the replica has replayed all that the primary has. */
    caughtUp
  }
  // A server that a test kills would say so
}, Logger.withMinimumLogLevel(LogLevel.None))
