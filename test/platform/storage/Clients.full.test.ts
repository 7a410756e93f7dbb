import { Effect, Fiber, Redacted } from "effect"
import pg from "pg"
import { countWaits, DiscreetClient, PreparingClient } from "../../../src/platform/storage/Clients.ts"
import { createTestDatabase } from "../../harness/TestDatabase.ts"
import { describe, expect, it } from "../../harness/Tests.ts"

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

/** Stops the server's process of a connection until the scope closes. */
const stop = (pid: number) =>
  Effect.acquireRelease(
    Effect.sync(() => process.kill(pid, "SIGSTOP")),
    () => Effect.sync(() => process.kill(pid, "SIGCONT"))
  )

describe("a client of the service's", () => {
  it.scopedLive("has one deadline for the wait for its connection and its first statement", function* () {
    const { url } = yield* createTestDatabase()
    const pool = yield* Effect.acquireRelease(
      Effect.sync(
        () =>
          new pg.Pool({
            connectionString: Redacted.value(url),
            // pg's type asks for the static side of its own class
            Client: DiscreetClient as unknown as NonNullable<pg.PoolConfig["Client"]>,
            max: 2,
            query_timeout: 4 * bound
          })
      ),
      (opened) => Effect.promise(() => opened.end())
    )
    pool.on("connect", (client) => client.on("error", () => {}))
    countWaits(pool)
    const [kept, other] = yield* Effect.promise(() => Promise.all([pool.connect(), pool.connect()]))
    const pids = [yield* backendOf(kept), yield* backendOf(other)]
    const failed: Array<string> = []
    const noted = (name: string, query: Promise<unknown>) =>
      Effect.promise(() =>
        query.then(
          () => failed.push(`not ${name}`),
          () => failed.push(name)
        )
      )
    const waited = yield* Effect.fork(noted("the one that waited", pool.query("SELECT 1")))
    yield* Effect.sleep(bound / 4)
    yield* Effect.forEach(pids, stop)
    const begun = yield* Effect.fork(noted("the one that began meanwhile", other.query("SELECT 1")))
    yield* Effect.sleep(bound / 4)
    kept.release()
    yield* Fiber.joinAll([waited, begun])
    other.release(true)
    expect(failed).toEqual(["the one that waited", "the one that began meanwhile"])
  })

  for (const Client of [DiscreetClient, PreparingClient])
    for (const [form, query] of Object.entries(forms)) {
      it.scopedLive(`ends if its server falls silent: ${Client.name}, ${form}`, function* () {
        const client = yield* connected(Client)
        yield* stop(yield* backendOf(client))
        const startedAt = performance.now()
        const [error] = yield* query(client, "SELECT $1::int AS one", [1])
        expect(error).toMatchObject({ code: "ETIMEDOUT", message: `The database has not answered for ${bound} ms` })
        expect(performance.now() - startedAt).toBeGreaterThan(bound - 5)
        // What is asked later does not wait for that again
        const [next] = yield* query(client, "SELECT 1 AS one")
        expect(next).toBeInstanceOf(Error)
      })
    }

  for (const [form, query] of Object.entries(forms)) {
    it.scopedLive(`stays if nothing is asked, however long, and while answers come: ${form}`, function* () {
      const client = yield* connected(PreparingClient)
      yield* query(client, "SELECT 1")
      yield* Effect.sleep(1.5 * bound)
      for (let number = 0; number < 12; number++) {
        const answer = yield* query(client, "SELECT $1::int AS number FROM pg_sleep($2)", [number, bound / 10_000])
        expect(answer).toEqual([null, [{ number }]])
      }
    })
  }
})
