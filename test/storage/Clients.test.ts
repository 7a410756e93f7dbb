import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import type pg from "pg"
import { DiscreetClient, PreparingClient } from "../../src/storage/Clients.ts"
import { createTestDatabase } from "../harness/TestDatabase.ts"

/** How long a server may be silent, in milliseconds: a hundred times what an answer takes. */
const bound = 1000

type Answer = readonly [error: unknown, rows: ReadonlyArray<unknown> | undefined]

const withCallback = (client: pg.Client, text: string, values: ReadonlyArray<unknown> = []) =>
  Effect.async<Answer>((resume) => {
    client.query(text, [...values], (error: unknown, result: pg.QueryResult | undefined) =>
      resume(Effect.succeed([error, result?.rows]))
    )
  })

const withPromise = (client: pg.Client, text: string, values: ReadonlyArray<unknown> = []) =>
  Effect.promise(() =>
    client.query(text, [...values]).then(
      ({ rows }): Answer => [null, rows],
      (error: unknown): Answer => [error, undefined]
    )
  )

const connected = (Client: typeof DiscreetClient) =>
  Effect.flatMap(createTestDatabase(), ({ url }) =>
    Effect.acquireRelease(
      Effect.promise(async () => {
        const client = new Client({ connectionString: Redacted.value(url), query_timeout: bound })
        client.on("error", () => {})
        await client.connect()
        return client
      }),
      (client) => Effect.promise(() => client.end().catch(() => {}))
    )
  )

const backendOf = (client: pg.Client) =>
  Effect.map(withPromise(client, "SELECT pg_backend_pid() AS pid"), ([, rows]) =>
    Number((rows?.[0] as { readonly pid: number } | undefined)?.pid)
  )

const forms = { "with a callback": withCallback, "with a promise": withPromise }

describe("a client of the service's", () => {
  for (const Client of [DiscreetClient, PreparingClient])
    for (const [form, query] of Object.entries(forms)) {
      it.scopedLive(`ends if its server falls silent: ${Client.name}, ${form}`, () =>
        Effect.gen(function* () {
          const client = yield* connected(Client)
          const pid = yield* backendOf(client)
          yield* Effect.acquireRelease(
            Effect.sync(() => process.kill(pid, "SIGSTOP")),
            () => Effect.sync(() => process.kill(pid, "SIGCONT"))
          )
          const startedAt = performance.now()
          const [error] = yield* query(client, "SELECT $1::int AS one", [1])
          expect(error).toMatchObject({ code: "ETIMEDOUT", message: `The database has not answered for ${bound} ms` })
          expect(performance.now() - startedAt).toBeGreaterThan(bound - 5)
          // What is asked later does not wait for that again
          const [next] = yield* query(client, "SELECT 1 AS one")
          expect(next).toBeInstanceOf(Error)
        })
      )
    }

  for (const [form, query] of Object.entries(forms)) {
    it.scopedLive(`stays if nothing is asked, however long, and while answers come: ${form}`, () =>
      Effect.gen(function* () {
        const client = yield* connected(PreparingClient)
        yield* query(client, "SELECT 1")
        yield* Effect.sleep(1.5 * bound)
        for (let number = 0; number < 12; number++) {
          const answer = yield* query(client, "SELECT $1::int AS number FROM pg_sleep($2)", [number, bound / 10_000])
          expect(answer).toEqual([null, [{ number }]])
        }
      })
    )
  }
})
