import { Deferred, Effect, Fiber, Redacted } from "effect"
import pg from "pg"
import { listenOn } from "../../../src/platform/storage/Listener.ts"
import { connectionTo } from "../../harness/Connection.ts"
import { eventuallyTrue } from "../../harness/Eventually.ts"
import { createTestDatabase } from "../../harness/TestDatabase.ts"
import { expect, it } from "../../harness/Tests.ts"

it.scopedLive("who found the listening connection's server hears of its end, however it ends", function* () {
  const { url } = yield* createTestDatabase()
  const admin = yield* connectionTo(url)
  let connected = 0
  let ended = 0
  class Counting extends pg.Client {
    override connect: pg.Client["connect"] = (async () => {
      await super.connect()
      connected += 1
      this.once("end", () => {
        ended += 1
      })
      return this
    }) as pg.Client["connect"]
  }
  const listening = yield* Deferred.make<void>()
  const again = yield* Deferred.make<void>()
  const listen = (begun: Deferred.Deferred<void>) =>
    listenOn({ connectionString: Redacted.value(url) }, Counting, "any", {
      onListening: () => Deferred.unsafeDone(begun, Effect.void),
      onNotification: () => {}
    })
  const lost = yield* Effect.fork(Effect.exit(listen(listening)))
  yield* Deferred.await(listening)
  yield* Effect.promise(() =>
    admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'connected-payments listener'`)
  )
  expect((yield* Fiber.join(lost))._tag).toBe("Failure")
  const left = yield* Effect.fork(listen(again))
  yield* Deferred.await(again)
  yield* Fiber.interrupt(left)
  yield* eventuallyTrue("both ends", () => ended === 2)
  expect(connected).toBe(2)
})
