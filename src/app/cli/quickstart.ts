import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises"
import { createServer, type Server } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { verifyWebhook, type WebhookEvent, type WebhookEventOf, type WebhookEventType } from "../../webhooks/index.ts"

/**
 * The main flow in a temporary data directory, as an integrator's backend would do it: over HTTP, with a consumer that
 * verifies what it receives. Plain TypeScript on purpose, to show how to integrate without Effect.
 */

const order = { reference: "order-1001", amount: 2 * 1500, currency: "brl" } as const
const deadline = Date.now() + 55_000

class StepFailed extends Error {}

/** The service, once it is started: it must not outlive this process. */
let service: ChildProcess | undefined

/** Ends the service and removes its directory if this process is killed: its input ends with this process. */
let watcher: ChildProcess | undefined

/** Stops process `$0` once the input ends, and removes the directory `$1`. */
const watchScript = `cat
kill -INT "$0"
for _ in $(seq 200); do kill -0 "$0" || break; sleep 0.1; done
rm -rf "$1"`

/** Rejects when this process gets a signal to stop, or when nobody reads its output any more. */
const stopped = new Promise<never>((_, reject) => {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(signal, () => {
      process.exitCode = 130
      reject(new StepFailed(`stopped by ${signal}`))
    })
  }
  // Each further line fails, too
  process.stdout.on("error", reject)
})

const fail = (message: string): never => {
  throw new StepFailed(message)
}

let step = "start"
const begin = (name: string) => {
  step = name
}
const done = (detail: string) => {
  process.stdout.write(`✓ ${step}\n    ${detail}\n`)
}

const until = async <A>(what: string, look: () => Promise<A | undefined>): Promise<A> => {
  while (Date.now() < deadline) {
    const found = await look()
    if (found !== undefined) {
      return found
    }
    await sleep(50)
  }
  return fail(`${what} did not happen in time`)
}

interface LocalFile {
  readonly baseUrl: string
  readonly organizationId: string
  readonly apiKey: string
}

const startService = async (directory: string): Promise<LocalFile> => {
  begin("service started")
  const main = fileURLToPath(new URL("../main.ts", import.meta.url))
  const started = spawn(process.execPath, ["--import", "tsx", main], {
    env: { ...process.env, MODE: "local", DATA_DIR: directory, PORT: "0", HOST: "127.0.0.1" },
    stdio: ["ignore", "ignore", "pipe"]
  })
  service = started
  watcher = spawn("/bin/sh", ["-c", watchScript, String(started.pid), directory], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"]
  })
  // Without a shell, the files of a killed process stay
  watcher.on("error", () => {})
  let log = ""
  started.stderr?.on("data", (chunk: Buffer) => {
    log = (log + chunk.toString()).slice(-4000)
  })
  const file = join(directory, "local.json")
  const written = await until("the service's start", () => {
    if (started.exitCode !== null) return fail(`the service ended with code ${started.exitCode}\n${log}`)
    return readFile(file, "utf8").catch(() => undefined)
  })
  const local: LocalFile = JSON.parse(written)
  done(`${local.baseUrl}, on an embedded PostgreSQL and the provider emulator`)
  return local
}

const stopService = async () => {
  if (service !== undefined && service.exitCode === null && service.signalCode === null) {
    const ended = once(service, "exit")
    service.kill("SIGINT")
    await ended
  }
  watcher?.kill("SIGKILL")
}

type Json = Readonly<Record<string, unknown>>

/** Calls the API as a backend does: the key in `x-api-key`, an idempotency key with every write. */
const makeClient = (local: LocalFile) => {
  const call = async (method: string, path: string, body?: Json): Promise<Json> => {
    const response = await fetch(`${local.baseUrl}/v2/organizations/${local.organizationId}${path}`, {
      method,
      headers: {
        "x-api-key": local.apiKey,
        ...(body === undefined ? {} : { "content-type": "application/json", "idempotency-key": crypto.randomUUID() })
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    const answer = await response.text()
    return response.ok ? JSON.parse(answer) : fail(`${method} ${path} answered ${response.status}: ${answer}`)
  }
  return {
    get: (path: string) => call("GET", path),
    post: (path: string, body: Json) => call("POST", path, body)
  }
}

const text = (object: Json, field: string): string => {
  const value = object[field]
  return typeof value === "string" ? value : fail(`the answer has no ${field}`)
}

const list = (object: Json): ReadonlyArray<Json> => {
  const data = object["data"]
  return Array.isArray(data) ? data : fail("the answer is not a list")
}

interface ReceivedEvent {
  readonly event: WebhookEvent
  readonly deliveryId: string
}

/** The integrator's endpoint: verifies, stores each event once, and only then answers 2xx. */
const startConsumer = async (secret: () => string, organizationId: string) => {
  const received = new Map<string, ReceivedEvent>()
  const refused: Array<string> = []
  const server: Server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      try {
        const header = request.headers["service-signature"]
        const event = verifyWebhook({
          body: Buffer.concat(chunks),
          header: typeof header === "string" ? header : undefined,
          secret: secret(),
          organizationId,
          livemode: false
        })
        received.set(event.id, { event, deliveryId: String(request.headers["service-delivery-id"]) })
        response.writeHead(204).end()
      } catch (error) {
        refused.push(error instanceof Error ? error.message : String(error))
        response.writeHead(400).end()
      }
    })
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : fail("the consumer has no port")
  const event = <Type extends WebhookEventType>(type: Type) =>
    until(`the event ${type}`, async () => {
      if (refused.length > 0) {
        return fail(`the consumer refused an event: ${refused.join("; ")}`)
      }
      const isMeant = (one: ReceivedEvent): one is ReceivedEvent & { readonly event: WebhookEventOf<Type> } =>
        one.event.type === type
      return [...received.values()].find(isMeant)
    })
  return { server, url: `http://127.0.0.1:${port}/webhooks`, event }
}

type Api = ReturnType<typeof makeClient>
type Consumer = Awaited<ReturnType<typeof startConsumer>>
type Payment = WebhookEventOf<"payment.succeeded">["data"]

const registerDestination = async (api: Api, url: string) => {
  begin("destination registered")
  const endpoint = await api.post("/integrations/endpoints", {
    name: "Order service",
    url,
    events: ["checkout.completed", "payment.succeeded"]
  })
  const registered = { endpointId: text(endpoint, "id"), signingSecret: text(endpoint, "signingSecret") }
  done(`${url} receives checkout.completed and payment.succeeded`)
  return registered
}

const createPrice = async (api: Api) => {
  begin("product created")
  const product = text(await api.post("/provider/products", { name: "Coffee, 250 g" }), "id")
  done(product)
  begin("price created")
  const unit = { product, currency: order.currency, unit_amount: order.amount / 2 }
  const price = text(await api.post("/provider/prices", unit), "id")
  done(`${price}: 15.00 BRL`)
  return price
}

const createSession = async (api: Api, price: string) => {
  begin("checkout session created")
  const session = await api.post("/provider/checkout/sessions", {
    mode: "payment",
    line_items: [{ price, quantity: 2 }],
    client_reference_id: order.reference
  })
  const created = { sessionId: text(session, "id"), url: text(session, "url") }
  done(`${created.sessionId} for ${order.reference}: 2 × 15.00 BRL`)
  return created
}

const pay = async (url: string) => {
  begin("paid on the provider's page")
  const paid = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: "action=pay",
    redirect: "manual"
  })
  if (paid.status !== 303) {
    fail(`the page answered ${paid.status}`)
  }
  done("the payer's browser returns; that alone confirms nothing")
}

const receiveEvents = async (consumer: Consumer, sessionId: string, price: string) => {
  begin("checkout.completed delivered")
  const completed = await consumer.event("checkout.completed")
  const { data } = completed.event
  if (data.session_id !== sessionId || data.payment_status !== "paid" || data.price_ids?.includes(price) !== true) {
    fail(`it does not match the session: ${JSON.stringify(data)}`)
  }
  done("signature, time, version, organization and environment verified")
  begin("payment.succeeded delivered")
  const succeeded = await consumer.event("payment.succeeded")
  const payment = succeeded.event.data
  done(`${payment.payment_id}: ${payment.amount_received} ${payment.currency}`)
  return { payment, deliveryIds: new Set([completed.deliveryId, succeeded.deliveryId]) }
}

const matchOrder = async (api: Api, sessionId: string, payment: Payment) => {
  begin("order matched")
  const confirmed = await api.get(`/provider/checkout/sessions/${sessionId}`)
  const matches =
    confirmed["status"] === "complete" &&
    confirmed["payment_status"] === "paid" &&
    confirmed["client_reference_id"] === order.reference &&
    confirmed["payment_intent"] === payment.payment_id &&
    payment.amount_received === order.amount &&
    payment.currency === order.currency
  if (!matches) {
    fail("order, payment, amount or currency differ")
  }
  done(`${order.reference}: payment, amount and currency agree`)
}

const compareDeliveries = async (api: Api, endpointId: string, received: ReadonlySet<string>) => {
  begin("deliveries recorded")
  const deliveries = await until("the record of both deliveries", async () => {
    const all = list(await api.get(`/integrations/endpoints/${endpointId}/deliveries`))
    return all.length === 2 && all.every(({ state }) => state === "delivered") ? all : undefined
  })
  if (!deliveries.every((delivery) => received.has(text(delivery, "id")))) {
    fail("the history shows other deliveries than the consumer received")
  }
  done("the API shows both as delivered")
}

const run = async (directory: string) => {
  const local = await startService(directory)
  const api = makeClient(local)
  let secret = ""
  const consumer = await startConsumer(() => secret, local.organizationId)
  try {
    const { endpointId, signingSecret } = await registerDestination(api, consumer.url)
    secret = signingSecret
    const price = await createPrice(api)
    const { sessionId, url } = await createSession(api, price)
    await pay(url)
    const { deliveryIds, payment } = await receiveEvents(consumer, sessionId, price)
    await matchOrder(api, sessionId, payment)
    await compareDeliveries(api, endpointId, deliveryIds)
  } finally {
    consumer.server.closeAllConnections()
    consumer.server.close()
  }
}

const directory = await mkdtemp(join(tmpdir(), "connected-payments-quickstart-"))
// Under root, the database runs as another account, which must be able to enter
await chmod(directory, 0o711)
const startedAt = Date.now()
try {
  await Promise.race([run(directory), stopped])
  process.stdout.write(`\nA payment, end to end, in ${((Date.now() - startedAt) / 1000).toFixed(1)} s.\n`)
} catch (error) {
  process.exitCode ??= 1
  const reason = error instanceof StepFailed ? error.message : error instanceof Error ? error.stack : String(error)
  process.stderr.write(`✗ ${step}: ${reason}\n`)
} finally {
  await stopService()
  await rm(directory, { recursive: true, force: true })
}
// Otherwise an interrupted step would keep waiting for its result
process.exit()
