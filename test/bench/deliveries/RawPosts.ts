import { createHmac } from "node:crypto"
import { performance } from "node:perf_hooks"
import { Agent } from "undici"

/**
 * The ceiling: signed POSTs through undici's dispatcher, as many at once as the worker has in flight, and nothing else.
 *
 * Arguments as JSON: `{ports, inFlight, payload, warmUpMillis, millis}`. Writes `{sent, seconds, processorMicros}`.
 */

interface Options {
  readonly ports: ReadonlyArray<number>
  readonly inFlight: number
  readonly payload: string
  readonly warmUpMillis: number
  readonly millis: number
}

export interface RawResult {
  readonly sent: number
  readonly seconds: number
  readonly processorMicros: number
}

// Written by the bench that starts this process, in this form
const { inFlight, millis, payload, ports, warmUpMillis }: Options = JSON.parse(process.argv[2] ?? "")
const secret = `whsec_${"k".repeat(43)}`
const agent = new Agent({ connections: Math.ceil(inFlight / ports.length), pipelining: 1 })
let sent = 0
let failed = 0
let over = false

const post = (port: number): void => {
  const timestamp = Math.floor(Date.now() / 1000)
  const signature = createHmac("sha256", secret).update(`${timestamp}.`).update(payload).digest("hex")
  const next = () => {
    sent++
    if (!over) post(port)
  }
  agent.dispatch(
    {
      origin: `http://127.0.0.1:${port}`,
      path: "/hook",
      method: "POST",
      headers: {
        "content-type": "application/json",
        "user-agent": "connected-payments/0.0.0",
        "service-delivery-id": "0192f0c0-7a1e-7c52-9d3b-5f0e6a1c2b4d",
        "service-signature": `t=${timestamp},v1=${signature}`
      },
      body: payload
    },
    {
      onRequestStart() {},
      onResponseStart() {},
      onResponseData() {},
      onResponseEnd: next,
      onResponseError() {
        failed++
        next()
      }
    }
  )
}

for (let index = 0; index < inFlight; index++) post(ports[index % ports.length] ?? 0)

setTimeout(() => {
  const [startedAt, before, usage] = [performance.now(), sent, process.cpuUsage()]
  setTimeout(() => {
    const count = sent - before
    const { system, user } = process.cpuUsage(usage)
    const result: RawResult = {
      sent: failed > 0 ? Number.NaN : count,
      seconds: (performance.now() - startedAt) / 1000,
      processorMicros: (system + user) / count
    }
    over = true
    process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0))
  }, millis)
}, warmUpMillis)
