import { connect, type Socket } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { Console, Effect } from "effect"
import { startApi } from "../api/Api.ts"
import type { Bench, Figure } from "../Bench.ts"
import { startDatabase } from "../deliveries/Bed.ts"
import { residentMegabytes } from "../memory/Memory.ts"

/**
 * How much more memory an API process takes while strangers keep notifications of 1 MiB unfinished, under headers that look
 * right: each connection once, and with every connection that ends opened again.
 */

const size = 1024 * 1024
const missing = 30
const body = Buffer.alloc(size - missing, " ")
const settleMillis = 5000
const attackMillis = 25_000
/** Often enough that the server does not take the connection for dead. */
const byteMillis = 9000

const bar = 150

/** As many connections of one address as it may have. */
const perAddress = 1000

interface Attack {
  readonly baseUrl: string
  readonly localAddress: string
  readonly signal: AbortSignal
  readonly again: boolean
  readonly answered: (status: string) => void
}

/** Keeps one notification unfinished until the signal; counts the answers. */
const attack = ({ again, answered, baseUrl, localAddress, signal }: Attack): void => {
  const { hostname, port } = new URL(baseUrl)
  const once = (): void => {
    if (signal.aborted) return
    const socket: Socket = connect({ host: hostname, port: Number(port), localAddress })
    const end = () => socket.destroy()
    signal.addEventListener("abort", end)
    let dripping: NodeJS.Timeout | undefined
    socket
      .on("connect", () => {
        const header = `t=${Math.floor(Date.now() / 1000)},v1=${"0".repeat(64)}`
        socket.write(
          `POST /webhooks/provider HTTP/1.1\r\nhost: x\r\nstripe-signature: ${header}\r\ncontent-length: ${size}\r\n\r\n`
        )
        socket.write(body)
        dripping = setInterval(() => socket.write(" "), byteMillis)
      })
      .on("data", (bytes) => answered(bytes.toString("latin1", 9, 12)))
      .on("error", () => {})
      .on("close", () => {
        clearInterval(dripping)
        signal.removeEventListener("abort", end)
        if (again) setTimeout(once, 100)
      })
  }
  once()
}

export const bodiesBench: Bench = {
  name: "bodies",
  about: "the API's resident memory beside 1,000 and 2,000 unfinished notifications of 1 MiB",
  run: Effect.gen(function* () {
    const database = yield* startDatabase
    const measure = (count: number, again: boolean) =>
      Effect.gen(function* () {
        const { baseUrl, pid } = yield* startApi(database)
        yield* Effect.promise(() => sleep(settleMillis))
        const before = yield* residentMegabytes(pid)
        const answers = new Map<string, number>()
        const attacking = yield* Effect.acquireRelease(
          Effect.sync(() => new AbortController()),
          (controller) => Effect.sync(() => controller.abort())
        )
        for (let n = 0; n < count; n++) {
          attack({
            baseUrl,
            localAddress: `127.0.0.${1 + Math.floor(n / perAddress)}`,
            signal: attacking.signal,
            again,
            answered: (status) => answers.set(status, (answers.get(status) ?? 0) + 1)
          })
        }
        let highest = 0
        for (let waited = 0; waited < attackMillis; waited += 100) {
          highest = Math.max(highest, yield* residentMegabytes(pid))
          yield* Effect.promise(() => sleep(100))
        }
        yield* Console.error(
          `  ${count}: ${before.toFixed(0)} MB, then at most ${highest.toFixed(0)} MB; answers: ${JSON.stringify(Object.fromEntries(answers))}`
        )
        const figure = (metric: string, value: number): Figure => ({
          bench: "bodies",
          case: `${count.toLocaleString("en")} unfinished${again ? ", opened again" : ""}`,
          metric,
          value,
          unit: "MB"
        })
        return [figure("rss_more", highest - before), figure("bar", bar)]
      }).pipe(Effect.scoped)
    const figures: Array<Figure> = []
    for (const again of [false, true]) {
      for (const addresses of [1, 2]) figures.push(...(yield* measure(addresses * perAddress, again)))
    }
    return figures
  })
}
