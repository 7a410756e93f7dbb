/** An endpoint of a test's own, what is queued for it, and a worker that runs only when a test says so. */
import { randomUUID } from "node:crypto"
import { Effect, Layer, Option } from "effect"
import { deliveryLayer } from "../../../src/app/Service.ts"
import { verifyWebhook, WebhookVerificationError } from "../../../src/webhooks/index.ts"
import { makeConsumer, type ReceivedRequest } from "../../harness/Consumer.ts"
import { eventually } from "../../harness/Eventually.ts"
import { type RequestOptions, sendRequest, TestService } from "../../harness/TestService.ts"
import { accepted, makeTenant, notification, notify, subscribe, type Tenant } from "../../inbound/Notifications.ts"

/** Runs an effect beside a worker of its own, which has no memory of those before it and ends in good order. */
export const withWorker = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(TestService, ({ options, services }) =>
    Effect.scoped(Effect.zipRight(Effect.provide(Layer.build(deliveryLayer(options)), services), effect))
  )

export const makeDestination = Effect.fnUntraced(function* (events: ReadonlyArray<string> = ["payment.succeeded"]) {
  const tenant = yield* makeTenant
  const consumer = yield* makeConsumer
  const { id, secret } = yield* subscribe(tenant, events, consumer.url)
  const base = `/v2/organizations/${tenant.id}/integrations`
  const send = (method: string, suffix = "", options: RequestOptions = {}) =>
    sendRequest(method, `${base}/endpoints/${id}${suffix}`, { key: tenant.key, ...options })
  const test = (type: string, key: string = randomUUID(), options: RequestOptions = {}) =>
    send("POST", "/test", { headers: { "idempotency-key": key }, body: { type }, ...options })
  const rotate = (options: RequestOptions = {}) => send("POST", "/rotate-secret", options)
  return { tenant, consumer, id, secret, base, send, test, rotate }
})

export const payment = (tenant: Tenant) => accepted(notify(notification(tenant.accountId)))

export const received = (consumer: { readonly received: ReadonlyArray<ReceivedRequest> }, count: number) =>
  eventually(
    `${count} requests`,
    Effect.sync(() =>
      consumer.received.length >= count ? Option.fromNullable(consumer.received.at(-1)) : Option.none()
    )
  )

export const signaturesOf = ({ headers }: ReceivedRequest): ReadonlyArray<string> =>
  String(headers["service-signature"])
    .split(",")
    .filter((part) => part.startsWith("v1="))
    .map((part) => part.slice(3))

export const verifies = ({ body, headers }: ReceivedRequest, secret: string): boolean => {
  try {
    verifyWebhook({ body, header: String(headers["service-signature"]), secret })
    return true
  } catch (error) {
    if (error instanceof WebhookVerificationError && error.reason === "signature_mismatch") return false
    throw error
  }
}

/** Which of these secrets signed a request, in the header's order: each `v1` taken by itself. */
export const signersOf = (
  request: ReceivedRequest,
  secrets: Readonly<Record<string, string>>
): ReadonlyArray<string> => {
  const [timestamp = ""] = String(request.headers["service-signature"]).split(",")
  return signaturesOf(request).map((signature) => {
    const alone = { ...request, headers: { "service-signature": `${timestamp},v1=${signature}` } }
    return Object.keys(secrets).find((name) => verifies(alone, secrets[name] ?? "")) ?? "nobody"
  })
}
