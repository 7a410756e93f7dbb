import { connect } from "node:net"
import { Effect } from "effect"
import { type LogLine, LogLines } from "../../src/platform/telemetry/LogLines.ts"
import { eventuallyIs, eventuallyTrue } from "../harness/Eventually.ts"
import { createMigratedDatabase } from "../harness/TestDatabase.ts"
import { expect, it } from "../harness/Tests.ts"
import { waitsForLock } from "../platform/storage/PartitionBed.ts"
import { providerAt, startService } from "../surface/http/StartedService.ts"
import { newEventId, notification, signature } from "./Notifications.ts"

const started = (lines: Array<LogLine>) =>
  Effect.flatMap(createMigratedDatabase, ({ url: databaseUrl }) =>
    startService({
      databaseUrl,
      provider: providerAt("http://127.0.0.1:9/")
    })
  ).pipe(
    Effect.provideService(LogLines, { writes: () => true, requests: true, write: (line) => void lines.push(line) })
  )

it.scopedLive("a sender that goes away while its notification is stored changes nothing: 499", function* () {
  const lines: Array<LogLine> = []
  const { baseUrl, sql } = yield* started(lines)
  const [locked, over] = [yield* Effect.makeLatch(false), yield* Effect.makeLatch(false)]
  yield* Effect.fork(
    sql.withTransaction(
      sql`LOCK TABLE payments.provider_accounts IN ACCESS EXCLUSIVE MODE`.pipe(
        Effect.zipRight(locked.open),
        Effect.zipRight(over.await)
      )
    )
  )
  yield* locked.await
  const id = newEventId()
  const body = notification("acct_1Nobody", { id })
  const { hostname, port } = new URL(baseUrl)
  const socket = connect(Number(port), hostname, () =>
    socket.write(
      [
        "POST /webhooks/provider HTTP/1.1",
        `host: ${hostname}`,
        `content-length: ${Buffer.byteLength(body)}`,
        `stripe-signature: ${signature(body)}`,
        "",
        body
      ].join("\r\n")
    )
  )
  socket.on("error", () => {})
  yield* waitsForLock(sql, "the look-up that waits", "%")
  socket.resetAndDestroy()
  yield* eventuallyTrue("the end of the connection", () => socket.closed)
  yield* over.open
  const stored = yield* eventuallyIs(
    "the receipt",
    sql`SELECT outcome FROM payments.receipts WHERE provider_event_id = ${id}`,
    (rows) => rows.length > 0
  )
  expect(stored).toEqual([{ outcome: "unlinked" }])
  yield* eventuallyTrue("its line", () => lines.length > 0)
  expect(lines.map(({ level, message }) => [level, message])).toEqual([["INFO", "POST /webhooks/provider 499"]])
  expect(socket.bytesRead).toBe(0)
})
