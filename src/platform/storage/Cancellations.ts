import type pg from "pg"
import { DiscreetClient, isCallback } from "./Clients.ts"

/**
 * Keeps the cancellation of one statement from hitting another.
 *
 * If a fiber is interrupted, as when a client disconnects, `PgClient` cancels its statement through the pool.
 * `pg_cancel_backend` takes a process id, not a statement, and the pool may first have to find a connection: by then
 * the target connection may be running another caller's statement, which would fail. The busier the pool, the likelier
 * this is.
 */

/** The statement by which `PgClient` cancels. A test fails if it changes. */
const cancellation = /^SELECT pg_cancel_backend\((\d+)\)$/

const canceledBy = (text: unknown): number | undefined => {
  const [, process] = typeof text === "string" ? (cancellation.exec(text) ?? []) : []
  return process === undefined ? undefined : Number(process)
}

/**
 * Sends a cancellation, unless its statement ends before a connection is free to send it. Calls `done` as soon as
 * either happens: if interrupted callers hold every connection in open transactions, none is free for the cancellations
 * until those callers continue to their rollbacks.
 */
const cancel = (pool: pg.Pool, text: string, target: DiscreetClient, done: () => void): void => {
  const statement = target.underWay
  if (statement === null) {
    done()
    return
  }
  target.onNextAnswer(done)
  pool.connect((failure, client, release) => {
    if (failure !== undefined || client === undefined) {
      done()
      return
    }
    // If its caller no longer waits, the pool may return the target connection itself, which would wait for its own
    // answer
    if (Object.is(client, target) || target.underWay !== statement) {
      release()
      done()
      return
    }
    const letGo = target.hold()
    let open = true
    const end = (error?: Error | null) => {
      if (!open) return
      open = false
      client.off("error", end)
      release(error ?? undefined)
      letGo()
      done()
    }
    client.once("error", end)
    client.query(text, end)
  })
}

/** Makes a pool cancel only the meant statement, and start no other on its connection until that is answered. */
export const cancelOnlyMeant = (pool: pg.Pool): void => {
  const clients = new Set<DiscreetClient>()
  pool.on("connect", (client) => {
    if (client instanceof DiscreetClient) clients.add(client)
  })
  pool.on("remove", (client) => {
    if (client instanceof DiscreetClient) clients.delete(client)
  })
  const { query } = pool
  // `pg.Pool#query` has as many overloads as a client's
  pool.query = ((...args: ReadonlyArray<unknown>) => {
    const [text, done] = args
    const process = canceledBy(text)
    if (process === undefined || !isCallback(done)) return Reflect.apply(query, pool, args)
    const target = [...clients].find((client) => client.process === process)
    let isDone = false
    const doneOnce = () => {
      if (!isDone) done(null, undefined)
      isDone = true
    }
    if (target === undefined) doneOnce()
    else target.whenFree(() => cancel(pool, String(text), target, doneOnce))
  }) as pg.Pool["query"]
}
