import { SqlClient } from "@effect/sql"
import { expect, layer } from "@effect/vitest"
import { Cause, Context, Duration, Effect, Exit, Layer, Logger, LogLevel, Option, Scope } from "effect"
import { type ClaimedDelivery, queueStart } from "../../src/deliveries/sending/Claim.ts"
import { ClaimingLeft } from "../../src/deliveries/sending/ClaimingLeft.ts"
import type { EndpointId } from "../../src/kit/Ids.ts"
import { Cluster, type Membership } from "../../src/storage/Cluster.ts"
import { databaseLayer } from "../../src/storage/Database.ts"
import { allShards, type Shards, sizeOf } from "../../src/storage/Shards.ts"
import { eventually } from "../harness/Eventually.ts"
import { createMigratedDatabase } from "../harness/TestDatabase.ts"
import { claimFrom, type Endpoint, idle, QueueBench } from "./QueueBench.ts"

/** Three parts of the whole. */
const parts: ReadonlyArray<Shards> = [0x55555555, 0x22222222, ~0x77777777]

const emptyBench = Effect.tap(QueueBench, ({ reset }) => reset)

const shardOf = (endpoint: Endpoint) =>
  Effect.flatMap(QueueBench, ({ sql }) =>
    Effect.map(
      sql<{ shard: number }>`SELECT uuid_hash(${endpoint.id}::uuid) & 31 AS shard`,
      ([row]) => 1 << (row?.shard ?? 0)
    )
  )

/** Two endpoints in different shards. */
const twoEndpoints = Effect.gen(function* () {
  const { makeEndpoint } = yield* QueueBench
  const one = yield* makeEndpoint
  const own = yield* shardOf(one)
  let other = yield* makeEndpoint
  while ((yield* shardOf(other)) === own) other = yield* makeEndpoint
  return { one, own, other }
})

/** The places of a worker that takes what was left. */
const places = 64

/** What claims what was left for a worker with room, in `claims`; `leftOut`: endpoints that hang. */
const claimingLeft = Effect.fnUntraced(function* (leftOut: ReadonlyArray<EndpointId>) {
  const { queues } = yield* QueueBench
  const begun: Array<ClaimedDelivery> = []
  const claims: Array<{ readonly tookMillis: number }> = []
  const claiming = new ClaimingLeft({
    options: { lease: Duration.seconds(15), concurrency: places, concurrencyPerEndpoint: 16 },
    queue: {
      ...queues[0],
      claim: (options) =>
        Effect.map(Effect.timed(queues[0].claim(options)), ([took, claim]) => {
          claims.push({ tookMillis: Duration.toMillis(took) })
          return claim
        })
    },
    attempts: { *lanes() {}, caps: () => new Map() },
    begin: (deliveries) => Effect.sync(() => void begun.push(...deliveries)),
    room: () => places,
    leftOut: () => leftOut
  })
  return { begun, claiming, claims }
})

/** What a worker takes of what was left, step after step until one finds something; `leftOut`: endpoints that hang. */
const takenOfWhatWasLeft = Effect.fnUntraced(function* (leftOut: ReadonlyArray<EndpointId>) {
  const { begun, claiming, claims } = yield* claimingLeft(leftOut)
  yield* eventually(
    "something that was left",
    Effect.map(claiming.claim, (found) => (found > 0 ? Option.some(found) : Option.none()))
  )
  return { begun: begun.map(({ id }) => id), looks: claims.length }
})

layer(QueueBench.layer, { excludeTestServices: true, timeout: "60 seconds" })("claims of shards", (it) => {
  it.effect("take everything between them, and each what belongs to its own", () =>
    Effect.gen(function* () {
      const { makeEndpoint, queues, seed } = yield* emptyBench
      const endpoints = yield* Effect.replicateEffect(makeEndpoint, 60)
      for (const endpoint of endpoints) yield* seed(endpoint, { count: 2 })
      for (const look of ["oldest", "newest"] as const) {
        const claims = yield* Effect.forEach(parts, (shards) => claimFrom(queues[0], { ...idle, look, shards }))
        const seen = claims.map((claimed) => new Set(claimed.map(({ endpointId }) => endpointId)))
        expect(seen.reduce((sum, { size }) => sum + size, 0)).toBe(60)
        expect(new Set(seen.flatMap((ids) => [...ids])).size).toBe(60)
        for (const ids of seen) expect(ids.size).toBeGreaterThan(0)
        for (const claimed of claims) {
          expect(claimed).toHaveLength(new Set(claimed.map(({ endpointId }) => endpointId)).size * 2)
          yield* queues[0].release(claimed, Duration.zero)
        }
      }
    })
  )

  it.effect("leave to others what came due just now, and take what they have left for a second", () =>
    Effect.gen(function* () {
      const { queues, seed } = yield* emptyBench
      const { one, other, own } = yield* twoEndpoints
      yield* seed(one, { dueInSeconds: -5 })
      yield* seed(other)
      const [left] = yield* seed(other, { dueInSeconds: -2 })
      const claimed = yield* claimFrom(queues[0], { ...idle, look: "overdue", shards: ~own, readAtMost: 10 })
      expect(claimed.map(({ id }) => id)).toEqual([left])
    })
  )

  it.effect("say where a look ended that has read as much as it may", () =>
    Effect.gen(function* () {
      const { queues, seed } = yield* emptyBench
      const { one, other, own } = yield* twoEndpoints
      for (let age = 20; age > 10; age--) yield* seed(one, { dueInSeconds: -age })
      const [left] = yield* seed(other, { dueInSeconds: -5 })
      let from = queueStart
      const looks: Array<number> = []
      for (let look = 0; look < 5; look++) {
        const claim = yield* queues[0].claim({ ...idle, look: "overdue", shards: ~own, readAtMost: 4, from })
        looks.push(claim.deliveries.length)
        if (claim.reached === null) {
          expect(claim.deliveries.map(({ id }) => id)).toEqual([left])
          break
        }
        expect(claim.deliveries).toEqual([])
        from = claim.reached
      }
      expect(looks).toEqual([0, 0, 0, 1])
    })
  )
})

layer(QueueBench.layer, { excludeTestServices: true, timeout: "60 seconds" })("a worker with room", (it) => {
  it.effect("takes what was left behind thousands that it may not take, which came due at the same moment", () =>
    Effect.gen(function* () {
      const { seed } = yield* emptyBench
      const { one, other } = yield* twoEndpoints
      yield* seed(one, { count: 9000, dueInSeconds: -10 })
      const [left] = yield* seed(other, { dueInSeconds: -2 })
      const { begun, looks } = yield* takenOfWhatWasLeft([one.id])
      expect(begun).toEqual([left])
      expect(looks).toBeLessThanOrEqual(4)
    })
  )

  it.effect("reads a few thousand rows of what hangs in a step, and comes to what was left behind them", () =>
    Effect.gen(function* () {
      const { seed } = yield* emptyBench
      const { one, other } = yield* twoEndpoints
      for (const age of [40, 30, 20]) yield* seed(one, { count: 4000, dueInSeconds: -age })
      const [left] = yield* seed(other, { dueInSeconds: -5 })
      const { begun, looks } = yield* takenOfWhatWasLeft([one.id])
      expect(begun).toEqual([left])
      expect(looks).toBeGreaterThan(1)
      expect(looks).toBeLessThanOrEqual(6)
    })
  )

  it.effect("goes on after as long as it took while it finds as many as it has room for", () =>
    Effect.gen(function* () {
      const { makeEndpoint, seed } = yield* emptyBench
      const endpoints = yield* Effect.replicateEffect(makeEndpoint, 32)
      for (const endpoint of endpoints) yield* seed(endpoint, { count: 4, dueInSeconds: -10 })
      const { claiming, claims } = yield* claimingLeft([])
      expect(yield* claiming.claim).toBe(places)
      expect(claiming.foundSome).toBe(true)
      // A little more is measured around the statement
      expect(claiming.nextInMillis).toBeLessThan((claims[0]?.tookMillis ?? Number.NaN) + 20)
      yield* eventually(
        "the others",
        Effect.map(claiming.claim, (found) => (found === places ? Option.some(found) : Option.none()))
      )
      // Nothing is left for a third one
      yield* eventually(
        "a look in vain",
        Effect.map(claiming.claim, () => (claims.length > 2 ? Option.some(true) : Option.none()))
      )
      expect(claiming.foundSome).toBe(false)
    })
  )
})

layer(Layer.empty, { excludeTestServices: true, timeout: "60 seconds" })("workers on one database", (it) => {
  it.scoped("share the shards, and share them anew as one comes, leaves or ends", () =>
    Effect.gen(function* () {
      const { url } = yield* createMigratedDatabase
      const join = Effect.gen(function* () {
        const scope = yield* Scope.make()
        yield* Effect.addFinalizer(() => Scope.close(scope, Exit.void))
        const built = yield* Layer.build(Layer.provide(Cluster.layer, databaseLayer({ url, poolSize: 1 }))).pipe(
          Scope.extend(scope)
        )
        const changes: Array<Shards> = []
        const cluster = Context.get(built, Cluster)
        // Before it joins, as a process does
        const leftToOthers = yield* cluster.keepHouse("house")
        const membership: Membership = yield* cluster
          .join({ lease: Duration.seconds(6), onChange: () => void changes.push(membership.shards()) })
          .pipe(Scope.extend(scope))
        return { ...membership, changes, cluster, leftToOthers, end: Scope.close(scope, Exit.void) }
      })
      const sharedBy = (...workers: ReadonlyArray<Membership>) =>
        eventually(
          `shards that ${workers.length} share`,
          Effect.sync(() => {
            const held = workers.map(({ shards }) => shards())
            const whole = held.reduce((all, shards) => all | shards, 0) === allShards
            const once = held.reduce((sum, shards) => sum + sizeOf(shards), 0) === 32
            return whole && once ? Option.some(held.map(sizeOf)) : Option.none()
          })
        )
      const [one, two] = yield* Effect.all([join, join], { concurrency: 2 })
      // Until it knows better, each looks after everything
      expect([one.shards(), two.shards()]).toEqual([allShards, allShards])
      for (const size of yield* sharedBy(one, two)) expect(size).toBeGreaterThan(8)
      expect(one.changes.at(-1)).toBe(one.shards())
      // One of them does what one should do; a process that only watches leaves it to them
      const led = yield* Effect.all([one.cluster.keepHouse("house"), two.cluster.keepHouse("house")])
      expect(led.toSorted()).toEqual([false, true])
      // Nobody who takes part has other tasks
      expect(yield* one.cluster.keepHouse("other")).toBe(false)

      const three = yield* join
      expect(three.shards()).toBe(allShards)
      expect([one.leftToOthers, two.leftToOthers, three.leftToOthers]).toEqual([false, false, true])
      for (const size of yield* sharedBy(one, two, three)) expect(size).toBeGreaterThan(5)
      yield* one.leave
      yield* sharedBy(two, three)
      yield* two.end
      yield* sharedBy(three)
      expect(yield* three.cluster.keepHouse("house")).toBe(false)
    })
  )

  it.scoped("warn that the database does not answer, look after everything meanwhile, and share again afterwards", () =>
    Effect.gen(function* () {
      const { url } = yield* createMigratedDatabase
      const lines: Array<{ readonly level: LogLevel.LogLevel; readonly text: string; readonly trace: string }> = []
      const log = Logger.make(({ cause, logLevel, message }) => {
        lines.push({ level: logLevel, text: JSON.stringify(message), trace: Cause.isEmpty(cause) ? "" : "trace" })
      })
      const sql = yield* Effect.map(Layer.build(databaseLayer({ url, poolSize: 1 })), Context.get(SqlClient.SqlClient))
      const cluster = yield* Effect.map(
        Layer.build(Layer.provide(Cluster.layer, databaseLayer({ url, poolSize: 1 }))),
        Context.get(Cluster)
      )
      const changes: Array<Shards> = []
      const membership: Membership = yield* cluster
        .join({ lease: Duration.seconds(6), onChange: () => void changes.push(membership.shards()) })
        .pipe(Effect.provide(Logger.replace(Logger.defaultLogger, log)))
      const said = (text: string) =>
        eventually(
          text,
          Effect.sync(() => Option.fromNullable(lines.find((line) => line.text.includes(text)))),
          60_000
        )
      yield* eventually(
        "its shards",
        Effect.sync(() => (changes.length > 0 ? Option.some(true) : Option.none()))
      )
      const unhealthy = yield* sql.withTransaction(
        Effect.zipRight(
          sql`LOCK TABLE payments.cluster_locks IN ACCESS EXCLUSIVE MODE`,
          said("Shard lock storage is unhealthy")
        )
      )
      expect(unhealthy).toMatchObject({ level: LogLevel.Warning, trace: "" })
      expect(unhealthy.text).toContain("timed out")
      expect(membership.shards()).toBe(allShards)
      yield* said("Shard lock storage has recovered")
      expect(lines.filter(({ level }) => LogLevel.greaterThan(level, LogLevel.Warning))).toEqual([])
    })
  )
})
