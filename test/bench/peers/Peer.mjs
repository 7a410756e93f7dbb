import { createHmac } from "node:crypto"
import pg from "pg"
import { Agent } from "undici"

/**
 * The job of the worker on another queue: take a delivery with its payload, sign it, POST it, record the attempt.
 *
 * Arguments as JSON: `{peer, tuned, databaseUrl, ports, payload, jobs}`. Adds the jobs, writes a line when it begins to
 * work on them, and works until it is told to end.
 */

const { databaseUrl, jobs, payload, peer, ports, tuned } = JSON.parse(process.argv[2])

const secret = `whsec_${"k".repeat(43)}`
const agent = new Agent({ connections: 64, pipelining: 1 })
const pool = new pg.Pool({ connectionString: databaseUrl, max: 10 })

const post = (delivery) =>
  new Promise((resolve, reject) => {
    const timestamp = Math.floor(Date.now() / 1000)
    const signature = createHmac("sha256", secret).update(`${timestamp}.`).update(delivery.payload).digest("hex")
    agent.dispatch(
      {
        origin: `http://127.0.0.1:${delivery.port}`,
        path: "/hook",
        method: "POST",
        headers: {
          "content-type": "application/json",
          "user-agent": "connected-payments/0.0.0",
          "service-delivery-id": delivery.id,
          "service-signature": `t=${timestamp},v1=${signature}`
        },
        body: delivery.payload
      },
      {
        onRequestStart() {},
        onResponseStart() {},
        onResponseData() {},
        onResponseEnd: resolve,
        onResponseError: (_, e) => reject(e)
      }
    )
  })

const recordAll = (ids) =>
  pool.query({
    name: "attempts",
    text: "INSERT INTO peer_attempts (id, number, started_at, duration_ms, http_status) SELECT id, 1, now(), 1, 204 FROM unnest($1::uuid[]) AS id",
    values: [ids]
  })

/** Gathers what comes while the insert before is under way. */
const makeWriter = () => {
  let waiting = []
  let writing = false
  const write = async () => {
    writing = true
    while (waiting.length > 0) {
      const batch = waiting
      waiting = []
      await recordAll(batch.map(({ id }) => id))
      for (const { done } of batch) done()
    }
    writing = false
  }
  return (id) =>
    new Promise((done) => {
      waiting.push({ id, done })
      if (!writing) void write()
    })
}

const record = tuned ? makeWriter() : (id) => recordAll([id])

const deliver = async (delivery) => {
  await post(delivery)
  await record(delivery.id)
}

const begin = () => process.stdout.write("working\n")

await pool.query("DROP TABLE IF EXISTS peer_attempts")
await pool.query(
  "CREATE TABLE peer_attempts (id uuid, number smallint, started_at timestamptz, duration_ms int, http_status smallint, PRIMARY KEY (id, number))"
)

const graphileWorker = async () => {
  const { run, runMigrations } = await import("graphile-worker")
  await pool.query("DROP SCHEMA IF EXISTS graphile_worker CASCADE")
  await runMigrations({ connectionString: databaseUrl })
  await pool.query(
    `SELECT count(*) FROM (SELECT graphile_worker.add_jobs(array_agg(
       ROW('deliver', json_build_object('id', gen_random_uuid(), 'port', ($1::int[])[1 + n % $2::int], 'payload', $3::text),
         NULL, NULL, 6, NULL, NULL, NULL)::graphile_worker.job_spec))
     FROM generate_series(1, $4::int) AS n) AS added`,
    [ports, ports.length, payload, jobs]
  )
  await pool.query("VACUUM ANALYZE")
  begin()
  // As the documentation's page on performance has it; tuned: what was fastest of what was tried
  await run({
    preset: {
      worker: {
        connectionString: databaseUrl,
        concurrentJobs: tuned ? 256 : 24,
        maxPoolSize: tuned ? 20 : 25,
        ...(tuned
          ? { localQueue: { size: 512 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 }
          : { localQueue: { size: 25 } })
      }
    },
    noHandleSignals: true,
    taskList: { deliver }
  })
}

const pgBoss = async () => {
  const { PgBoss } = await import("pg-boss")
  await pool.query("DROP SCHEMA IF EXISTS pgboss CASCADE")
  const boss = new PgBoss({ connectionString: databaseUrl, max: tuned ? 10 : 10 })
  boss.on("error", () => {})
  await boss.start()
  await boss.createQueue("deliver", { retryLimit: 5 })
  for (let left = jobs, n = 0; left > 0; left -= 5000) {
    const batch = Array.from({ length: Math.min(left, 5000) }, () => ({
      data: { id: crypto.randomUUID(), port: ports[n++ % ports.length], payload }
    }))
    await boss.insert("deliver", batch)
  }
  await pool.query("VACUUM ANALYZE")
  begin()
  if (tuned) {
    const options = { batchSize: 512, localConcurrency: 3, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true }
    await boss.work("deliver", options, (batch) => Promise.all(batch.map(({ data }) => deliver(data))))
  } else {
    const options = { batchSize: 25, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true }
    await boss.work("deliver", options, (batch) => Promise.all(batch.map(({ data }) => deliver(data))))
  }
}

await (peer === "graphile-worker" ? graphileWorker() : pgBoss())
process.on("SIGTERM", () => process.exit(0))
