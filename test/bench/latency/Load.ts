import { createHmac } from "node:crypto"
import { createServer } from "node:net"
import { performance } from "node:perf_hooks"
import { Pool } from "undici"

/**
 * The provider and the consumer in one process, so that one clock tells both times: sends signed notifications at random
 * times, whether or not earlier ones were answered, and takes the webhooks that come of them.
 *
 * Argument, as JSON: `LatencyOptions`. Writes a `LatencyResult`.
 */

export interface LatencyOptions {
  readonly url: string
  readonly webhookSecret: string
  readonly accountId: string
  readonly port: number
  /** Per second, on average. */
  readonly rate: number
  readonly warmUpMillis: number
  readonly millis: number
  /** How many webhooks come of a notification: the last one counts. */
  readonly fanOut: number
}

export interface LatencyResult {
  /** Notifications in all, those of the warm-up included. */
  readonly count: number
  readonly sent: number
  /** Notifications that were answered by anything but 200, or never. */
  readonly refused: number
  readonly missing: number
  /** Of the webhooks: from the notification's 200 to the consumer's first byte; 0 where it came before the 200. */
  readonly afterAnswer: ReadonlyArray<number>
  readonly afterSending: ReadonlyArray<number>
}

// Written by the bench that starts this process, in this form
const options: LatencyOptions = JSON.parse(process.argv[2] ?? "")

interface Times {
  readonly sentAt: number
  answeredAt: number
  receivedAt: number
  received: number
}

const run = Date.now().toString(36)
const times: Array<Times> = []
let refused = 0
/** When the last webhook came. */
let lastAt = 0
const answer = Buffer.from("HTTP/1.1 204 No Content\r\n\r\n", "latin1")
const eventId = new RegExp(`"event_id":"evt_${run}x(\\d+)"`)

createServer((socket) => {
  socket.setNoDelay()
  socket.on("error", () => {})
  let text = ""
  socket.on("data", (chunk: Buffer) => {
    const now = performance.now()
    text += chunk.toString("latin1")
    const found = eventId.exec(text)
    if (found === null || !text.endsWith("}")) return
    lastAt = now
    const noted = times[Number(found[1])]
    if (noted !== undefined && ++noted.received === options.fanOut) noted.receivedAt = now
    text = ""
    socket.write(answer)
  })
}).listen(options.port, "127.0.0.1")

const pool = new Pool(options.url, { connections: 128 })

const notification = (index: number): string =>
  JSON.stringify({
    id: `evt_${run}x${index}`,
    object: "event",
    api_version: null,
    account: options.accountId,
    created: Math.floor(Date.now() / 1000),
    livemode: false,
    pending_webhooks: 1,
    request: { id: null, idempotency_key: null },
    type: "payment_intent.succeeded",
    data: {
      object: {
        id: `pi_${run}x${index}`,
        object: "payment_intent",
        amount: 1500,
        amount_received: 1500,
        currency: "brl",
        customer: null,
        last_payment_error: null,
        latest_charge: `ch_${index}`,
        livemode: false,
        metadata: {},
        status: "succeeded"
      }
    }
  })

const send = async (): Promise<void> => {
  const index = times.length
  const body = notification(index)
  const timestamp = Math.floor(Date.now() / 1000)
  const signature = createHmac("sha256", options.webhookSecret).update(`${timestamp}.${body}`).digest("hex")
  const noted: Times = { sentAt: performance.now(), answeredAt: 0, receivedAt: 0, received: 0 }
  times.push(noted)
  try {
    const answered = await pool.request({
      path: "/webhooks/provider",
      method: "POST",
      headers: { "content-type": "application/json", "stripe-signature": `t=${timestamp},v1=${signature}` },
      body
    })
    await answered.body.dump()
    noted.answeredAt = performance.now()
    if (answered.statusCode !== 200) refused++
  } catch {
    refused++
  }
}

const startedAt = performance.now()
const endsAt = startedAt + options.warmUpMillis + options.millis
let nextAt = startedAt
const ticking = setInterval(() => {
  const now = Math.min(performance.now(), endsAt)
  while (nextAt < now) {
    void send()
    // Independent of each other, as what happens in the world is: evenly spaced, none would ever wait for another
    nextAt -= (Math.log(1 - Math.random()) * 1000) / options.rate
  }
  if (now >= endsAt) {
    clearInterval(ticking)
    finish()
  }
}, 1)

/** Waits for the webhooks that are on their way, until none has come for 15 seconds: a backlog is late, not missing. */
const finish = (): void => {
  lastAt = performance.now()
  const waiting = setInterval(() => {
    const open = times.some(({ answeredAt, receivedAt }) => answeredAt === 0 || receivedAt === 0)
    if (open && performance.now() - lastAt < 15_000) return
    clearInterval(waiting)
    const measured = times.filter(({ sentAt }) => sentAt >= startedAt + options.warmUpMillis)
    const arrived = measured.filter(({ receivedAt }) => receivedAt > 0)
    const result: LatencyResult = {
      count: times.length,
      sent: measured.length,
      refused,
      missing: measured.length - arrived.length,
      afterAnswer: arrived.map(({ answeredAt, receivedAt }) => Math.max(0, receivedAt - answeredAt)),
      afterSending: arrived.map(({ receivedAt, sentAt }) => receivedAt - sentAt)
    }
    process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0))
  }, 20)
}
