import type pg from "pg"
import { DiscreetClient, isCallback } from "./Clients.ts"

/**
 * Keeps the cancellation of one statement from hitting another.
 *
 * If a fiber is interrupted, as when a client goes away, `PgClient` cancels its statement through the pool. PostgreSQL takes
 * the number of a connection's process for that and no statement, and the pool may first have to find a connection: by then
 * the first one may be at somebody else's statement, which would fail. The busier the pool, the likelier.
 */

/** What `PgClient` asks. A test notices if it asks something else. */
const cancellation = /^SELECT pg_cancel_backend\((\d+)\)$/

/** The number of the process that a text is to cancel the statement of; undefined if it is something else. */
const canceledBy = (text: unknown): number | undefined => {
  const [, process] = typeof text === "string" ? (cancellation.exec(text) ?? []) : []
  return process === undefined ? undefined : Number(process)
}

/**
 * Sends a cancellation, unless its statement ends before there is a connection for it. `done` is called as soon as either is
 * over: while each connection is some caller's who has left in the middle of a transaction, none is free for a cancellation,
 * and they have to go on to their rollbacks.
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
    // The connection itself has come back if its caller no longer waits for this: it would wait for its own answer
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

/**
 * Has a pool send a cancellation only while its statement is under way, and begin no other on that connection until the
 * cancellation has been answered.
 */
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
