import { expect } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { batchSql } from "../src/inbound/ReceiptStatement.ts"
import { claimFrom, finished, idle, QueueBench } from "./engine/QueueBench.ts"
import { recordedQueries } from "./harness/TestDatabase.ts"
import { onService, TestService } from "./harness/TestService.ts"
import { layer } from "./harness/Tests.ts"

/**
 * The statements that run most, as they are assembled, in `statements/`: so that whoever changes a part of one sees the
 * whole. `npx vitest run test/HotStatements.test.ts --update` writes them.
 */

/** The texts of the statements that an effect sends, in which the pattern is found. */
const sentBy = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  pattern: RegExp
): Effect.Effect<ReadonlyArray<string>, E, R | Scope.Scope> =>
  Effect.gen(function* () {
    const query = yield* recordedQueries
    yield* effect
    const texts = query.mock.calls.map(([sent]: ReadonlyArray<unknown>) =>
      typeof sent === "string" ? sent : String(Object(sent).text)
    )
    return [...new Set(texts.filter((text) => pattern.test(text)))]
  })

/** As a file has it: without blank ends of lines, and the indentation of the code around it. */
const asFile = (text: string | undefined) => {
  const lines = (text ?? "")
    // The mark tells of the day and of the tables' sizes
    .replace(/\/\* \d\.\d+\.\d+ \*\//, "/* mark */")
    .split("\n")
    .map((line) => line.trimEnd())
    .filter((line) => line !== "")
  const indent = Math.min(...lines.slice(1).map((line) => /^ */.exec(line)?.[0].length ?? 0))
  return `${lines.map((line, index) => (index === 0 ? line.trimStart() : line.slice(indent))).join("\n")}\n`
}

const isTheFile = (name: string, texts: ReadonlyArray<string>) =>
  Effect.promise(() => expect(asFile(texts[0])).toMatchFileSnapshot(`statements/${name}.sql`))

onService()("the statement of requests", (it) => {
  it.scoped("admits a key and takes its tokens", function* () {
    const { organization, request } = yield* TestService
    const asked = request("GET", `/v2/organizations/${organization.id}/integrations/endpoints`, {
      key: organization.testKey
    })
    yield* isTheFile("key", yield* sentBy(asked, /payments\.api_keys[\s\S]*payments\.rate_limits/))
  })
})

layer(QueueBench.layer)("the statements of the queue", (it) => {
  it.effect("store notifications with their events and deliveries", function* () {
    const { sql } = yield* QueueBench
    const [text] = sql`${batchSql(sql, { kind: "month", month: "2026-11", others: ["receipts_undated"] })}`.compile()
    yield* isTheFile("notification", [text])
  })

  it.scoped("claim deliveries and record their attempts", function* () {
    const { makeEndpoint, queues, seed } = yield* QueueBench
    const [queue] = queues
    yield* seed(yield* makeEndpoint)
    const recorded = Effect.flatMap(claimFrom(queue, idle), (deliveries) =>
      queue.finish(deliveries.map((delivery) => finished(delivery, 204, { state: "delivered" })))
    )
    const texts = yield* sentBy(recorded, /payments\.delivery_queue/)
    yield* isTheFile(
      "claim",
      texts.filter((text) => text.includes("SKIP LOCKED"))
    )
    yield* isTheFile(
      "record",
      texts.filter((text) => text.includes("result AS MATERIALIZED"))
    )
  })
})
