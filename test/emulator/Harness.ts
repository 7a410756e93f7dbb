import { mkdtempSync, rmSync } from "node:fs"
import { createServer, type IncomingHttpHeaders } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Schedule, type Scope } from "effect"
import { Stripe } from "stripe"
import { type Emulator, type EmulatorError, type EmulatorOptions, makeEmulator } from "../../src/emulator/Emulator.ts"
import { listening } from "../harness/Listening.ts"
import type { Steps } from "../harness/Tests.ts"
import { it } from "../harness/Tests.ts"

export const secretKey = "sk_test_emulatorKey0000"
export const webhookSecret = "whsec_emulatorSecret0000"
export const thinWebhookSecret = "whsec_emulatorThinSecret0000"

export const startEmulator = (
  options: Partial<EmulatorOptions> = {}
): Effect.Effect<Emulator, EmulatorError, Scope.Scope> =>
  makeEmulator({ secretKey, webhookSecret, thinWebhookSecret, ...options })

export const sdk = (url: string, account?: string, key = secretKey): Stripe => {
  const { hostname, port } = new URL(url)
  return new Stripe(key, {
    host: hostname,
    port,
    protocol: "http",
    maxNetworkRetries: 0,
    telemetry: false,
    ...(account === undefined ? {} : { stripeAccount: account })
  })
}

/** An emulator, a connected account of it and the SDK acting on that account. */
export const connected = (options: Partial<EmulatorOptions> = {}) =>
  Effect.gen(function* () {
    const emulator = yield* startEmulator(options)
    const account = yield* emulator.ensureAccount()
    return { emulator, account, stripe: sdk(emulator.url, account) }
  })

/** A test in real time on an emulator, a connected account of it and the SDK acting on that account. */
export const onEmulator = (
  name: string,
  body: (scene: Effect.Effect.Success<ReturnType<typeof connected>>) => Steps
): void =>
  it.scopedLive(name, function* () {
    yield* body(yield* connected())
  })

/** What the SDK answers; a refusal is a defect of the test. */
export const call = <A>(request: () => Promise<A>): Effect.Effect<A> => Effect.promise(request)

/** The SDK's error; an answer is a defect of the test. */
export const refusal = (
  request: () => Promise<unknown>
): Effect.Effect<InstanceType<typeof Stripe.errors.StripeError>> =>
  Effect.tryPromise({ try: request, catch: (cause) => cause }).pipe(
    Effect.flip,
    Effect.flatMap((cause) => (cause instanceof Stripe.errors.StripeError ? Effect.succeed(cause) : Effect.die(cause))),
    Effect.orDieWith(() => new Error("The request was expected to be refused"))
  )

/** What a refusal says, for one comparison of all of it. */
export const said = (request: () => Promise<unknown>) =>
  Effect.map(refusal(request), ({ code, param, rawType, statusCode }) => ({ code, param, rawType, statusCode }))

export const raw = (url: string, path: string, init: RequestInit = {}) =>
  Effect.promise(async () => {
    const headers = new Headers({ authorization: `Bearer ${secretKey}` })
    new Headers(init.headers).forEach((value, name) => {
      headers.set(name, value)
    })
    const response = await fetch(url + path, { redirect: "manual", ...init, headers })
    return { status: response.status, headers: response.headers, text: await response.text() }
  })

export const submit = (pageUrl: string | null, fields: Readonly<Record<string, string>>) => {
  const { origin, pathname } = new URL(pageUrl ?? "about:blank")
  return raw(origin, pathname, { method: "POST", body: new URLSearchParams(fields) })
}

/** Opens a payment link as a payer does; the URL of the session's page that it leads to. */
export const openLink = (linkUrl: string) => {
  const { origin, pathname } = new URL(linkUrl)
  return Effect.map(raw(origin, pathname), ({ headers }) => headers.get("location"))
}

/** Tries again until it succeeds, for at most so long that the test can still say what it waited for. */
export const eventually = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.retry(effect, Schedule.spaced("20 millis").pipe(Schedule.upTo("50 seconds")))

export const until = (condition: () => boolean): Effect.Effect<void, string> =>
  eventually(Effect.suspend(() => (condition() ? Effect.void : Effect.fail("The condition did not come true"))))

export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** A platform that listens for notifications; `answer` says with which status, none is no answer at all. */
export const platform = (answer: (received: ReadonlyArray<Received>) => number | undefined = () => 200) =>
  Effect.gen(function* () {
    const received: Array<Received> = []
    const server = createServer((message, response) => {
      let body = ""
      message.setEncoding("utf8")
      message.on("data", (chunk: string) => {
        body += chunk
      })
      message.on("end", () => {
        received.push({ path: message.url ?? "", headers: message.headers, body })
        const status = answer(received)
        if (status !== undefined) response.writeHead(status).end()
      })
    })
    return { url: `http://127.0.0.1:${yield* listening(server)}/webhooks/provider`, received }
  })

export const temporaryDirectory: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "emulator-"))),
  (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
)

export const somePrice = (stripe: Stripe, params: Partial<Stripe.PriceCreateParams> = {}) =>
  call(() =>
    stripe.prices.create({
      currency: "brl",
      unit_amount: 500,
      ...(params.product === undefined ? { product_data: { name: "Coffee" } } : {}),
      ...params
    })
  )

export const someSession = (stripe: Stripe, params: Partial<Stripe.Checkout.SessionCreateParams> = {}) =>
  Effect.gen(function* () {
    const line_items = params.line_items ?? [{ price: (yield* somePrice(stripe)).id, quantity: 2 }]
    return yield* call(() =>
      stripe.checkout.sessions.create({
        mode: "payment",
        success_url: "https://shop.example/thanks?session={CHECKOUT_SESSION_ID}",
        ...params,
        line_items
      })
    )
  })
