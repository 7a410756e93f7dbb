import { describe, expect } from "@effect/vitest"
import { Context, Effect, Layer, Redacted } from "effect"
import { Queue } from "../../src/engine/queue/Queue.ts"
import { databaseLayer } from "../../src/platform/storage/Database.ts"
import { addDeliveries, makeEndpoints, startDatabaseIn } from "../bench/deliveries/Bed.ts"
import { eventuallyIs } from "../harness/Eventually.ts"
import { it } from "../harness/Tests.ts"
import { temporaryDirectory } from "../platform/storage/fixtures/temporaryDirectory.ts"
import { idle } from "./QueueBench.ts"

describe("a claim and its confirmation", () => {
  it.scopedLive("do not wait for a replica, nor for the disk: an attempt begins sooner", function* () {
    const database = yield* startDatabaseIn(yield* temporaryDirectory)
    const layer = Layer.provide(Queue.layer, databaseLayer({ url: Redacted.make(database.url) }))
    const queue = Context.get(yield* Layer.build(layer), Queue)
    yield* addDeliveries(database, yield* makeEndpoints(database, ["https://shop.example/hook"]), 1)
    // Every commit that waits for the disk waits for a replica as well, and none comes
    yield* database.query("ALTER SYSTEM SET synchronous_standby_names = 'none_comes'")
    yield* database.query("SELECT pg_reload_conf()")
    const setting = database.query("SELECT current_setting('synchronous_standby_names') AS setting")
    yield* eventuallyIs("the setting", setting, ([row]) => row?.["setting"] === "none_comes")
    const { deliveries } = yield* queue.claim(idle).pipe(Effect.timeout("20 seconds"))
    expect(deliveries).toHaveLength(1)
    expect(yield* database.query("SELECT lease FROM payments.unconfirmed_claims")).toEqual([])
  })
})
