import { createHmac } from "node:crypto"
import { Duration, Effect, FiberSet, Queue, Random, Record, Ref, type Scope } from "effect"
import { Agent, request } from "undici"
import { isPlain, type Plain, present, unexpanded } from "../api/Presentation.ts"
import type { EmulatorError } from "../EmulatorError.ts"
import type { Delivery, Entry, Event, WebhookTarget } from "../Records.ts"
import { unixSeconds } from "../Service.ts"
import type { PendingDelivery, Scoped, Store } from "../store/Store.ts"
import { olderApiVersion } from "../Versions.ts"

const plain = (value: unknown): Plain => (isPlain(value) ? value : {})

const without = (object: Plain, ...names: ReadonlyArray<string>): Plain =>
  Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)))

const eachOf = (list: unknown, change: (item: Plain) => Plain): unknown =>
  isPlain(list) && Array.isArray(list["data"])
    ? { ...list, data: list["data"].map((item: unknown) => change(plain(item))) }
    : list

/** The price itself; in the current version a line has only its id. */
const priceOf = (objects: Scoped, id: unknown): Plain | null => {
  const price = typeof id === "string" ? objects.get("price", id) : undefined
  return price === undefined ? null : present(objects, "price", price, unexpanded)
}

const olderLine =
  (objects: Scoped) =>
  (line: Plain): Plain => {
    const parent = plain(line["parent"])
    const details = plain(parent["subscription_item_details"] ?? parent["invoice_item_details"])
    const isRecurring = parent["type"] === "subscription_item_details"
    return {
      ...without(line, "parent", "pricing", "quantity_decimal", "subtotal", "taxes"),
      amount_excluding_tax: line["amount"],
      ...(isRecurring
        ? { subscription_item: details["subscription_item"] }
        : { invoice_item: details["invoice_item"] }),
      price: priceOf(objects, plain(plain(line["pricing"])["price_details"])["price"]),
      proration: details["proration"] ?? false,
      proration_details: details["proration_details"] ?? { credited_items: null },
      tax_amounts: [],
      tax_rates: [],
      type: isRecurring ? "subscription" : "invoiceitem"
    }
  }

const paymentOf = (objects: Scoped, invoice: unknown) => {
  const payments = typeof invoice === "string" ? objects.get("invoice", invoice)?.payments.data : undefined
  const intent = payments?.[0]?.payment.payment_intent
  return typeof intent === "string"
    ? { charge: objects.get("payment_intent", intent)?.latest_charge ?? null, payment_intent: intent }
    : { charge: null, payment_intent: null }
}

const olderInvoice = (objects: Scoped, invoice: Plain): Plain => {
  const details = plain(plain(invoice["parent"])["subscription_details"])
  return {
    ...without(invoice, "parent", "total_taxes"),
    ...paymentOf(objects, invoice["id"]),
    discount: null,
    lines: eachOf(invoice["lines"], olderLine(objects)),
    paid: invoice["status"] === "paid",
    subscription: details["subscription"] ?? null,
    subscription_details: { metadata: details["metadata"] ?? null },
    tax: null,
    total_tax_amounts: []
  }
}

const firstItem = (subscription: Plain): Plain => {
  const items = plain(subscription["items"])["data"]
  return plain(Array.isArray(items) ? items[0] : undefined)
}

const periodFields = ["current_period_end", "current_period_start"] as const

const olderSubscription = (subscription: Plain): Plain => {
  if (!("items" in subscription)) return subscription
  const first = firstItem(subscription)
  return {
    ...without(subscription, "billing_mode", "billing_schedules"),
    ...Object.fromEntries(periodFields.map((name) => [name, first[name]])),
    items: eachOf(subscription["items"], (item) => without(item, ...periodFields))
  }
}

const invoiceOf = (objects: Scoped, intent: unknown): string | null =>
  objects.all("invoice").find(({ payments }) => payments.data.some(({ payment }) => payment.payment_intent === intent))
    ?.id ?? null

const olderPromotionCode = (objects: Scoped, code: Plain): Plain => {
  const id = plain(code["promotion"])["coupon"]
  const coupon = typeof id === "string" ? objects.get("coupon", id) : undefined
  return {
    ...without(code, "promotion"),
    coupon: coupon === undefined ? null : present(objects, "coupon", coupon, unexpanded)
  }
}

const older = (objects: Scoped, object: Plain): Plain => {
  switch (object["object"]) {
    case "charge":
      return { ...object, invoice: invoiceOf(objects, object["payment_intent"]) }
    case "invoice":
      return olderInvoice(objects, object)
    case "payment_intent":
      return { ...object, invoice: invoiceOf(objects, object["id"]) }
    case "promotion_code":
      return olderPromotionCode(objects, object)
    case "subscription":
      return olderSubscription(object)
    default:
      return object
  }
}

/**
 * Converts an event to the version before 2025: an invoice names its subscription and its payment itself and its lines
 * hold their prices, the subscription itself has the period, a payment names its invoice, and the event has no
 * `context`. Fields added since then are kept.
 */
const inOlderVersion = (objects: Scoped, { context: _, ...event }: Event): Event => {
  const previous = event.data.previous_attributes
  const object = plain(event.data.object)
  return {
    ...event,
    api_version: olderApiVersion,
    data: {
      object: older(objects, object),
      ...(previous === undefined
        ? {}
        : { previous_attributes: object["object"] === "subscription" ? olderSubscription(previous) : previous })
    }
  }
}

/**
 * The value of the provider's `Stripe-Signature` header: `t=<Unix seconds>,v1=<hex HMAC-SHA256 of "t.body">`, keyed
 * with the bytes of the whole secret.
 */
export const signatureHeader = (secret: string, timestamp: number, body: string): string =>
  `t=${timestamp},v1=${createHmac("sha256", secret).update(`${timestamp}.${body}`).digest("hex")}`

export interface Notifier {
  /** Sets the target of one of the platform's webhook endpoints; its notifications wait until then. */
  readonly setTarget: (entry: Entry, target: WebhookTarget) => Effect.Effect<void, EmulatorError>
  /** The attempts so far for an event whose notification is pending; undefined if this process made none. */
  readonly attemptsOf: (event: string) => number | undefined
}

const ownScope = "emulator"

const attemptTimeout = Duration.seconds(10)

/** Maximum number of concurrent attempts, which start in the order of their events. */
const concurrency = 32

/**
 * How long a refused notification rests: from 200 ms, doubling up to 5 s, and so that all that rest make at most 100
 * attempts a second.
 */
const restOf = (attempts: number, resting: number): Duration.Duration =>
  Duration.millis(Math.max(Math.min(200 * 2 ** (attempts - 1), 5000), resting * 10))

interface Outcome {
  readonly status: number | null
  readonly error: string | null
}

const reasonOf = (cause: unknown): string => {
  if (!(cause instanceof Error)) return "network_error"
  return "code" in cause && typeof cause.code === "string" ? cause.code : cause.name
}

/** Makes one request and discards the response body. Every failure is an outcome, not an error. */
const post = (agent: Agent, url: string, body: string, signature: string): Effect.Effect<Outcome> =>
  Effect.tryPromise({
    try: async (signal) => {
      const response = await request(url, {
        body,
        dispatcher: agent,
        headers: {
          "content-type": "application/json; charset=utf-8",
          "stripe-signature": signature,
          "user-agent": "Stripe/1.0 (+connected-payments local provider emulator)"
        },
        method: "POST",
        signal
      })
      await response.body.dump()
      return response.statusCode
    },
    catch: reasonOf
  }).pipe(
    Effect.timeoutFail({ duration: attemptTimeout, onTimeout: () => "timeout" }),
    Effect.match({
      onSuccess: (status): Outcome => ({ status, error: null }),
      onFailure: (error): Outcome => ({ status: null, error })
    })
  )

const isSuccess = ({ status }: Outcome): boolean => status !== null && status >= 200 && status < 300

const advance = (delivery: Delivery, attempts: number, { error, status }: Outcome): Delivery => ({
  ...delivery,
  state: isSuccess({ error, status }) ? "delivered" : "pending",
  attempts,
  lastStatus: status,
  lastError: error
})

/** Repeated identical failures are not written, so that an unreachable target does not fill the journal. */
const record = (store: Store, { event, scope }: PendingDelivery, attempts: number, outcome: Outcome) =>
  store.transact((transaction) =>
    Effect.sync(() => {
      const objects = transaction.in(scope)
      const delivery = objects.get("delivery", event)
      if (delivery === undefined) return
      const next = advance(delivery, attempts, outcome)
      const repeated = delivery.lastStatus === next.lastStatus && delivery.lastError === next.lastError
      if (next.state === "delivered" || !repeated) objects.put("delivery", event, next)
    })
  )

const payloadOf = (objects: Scoped, delivery: Delivery, target: WebhookTarget): object | undefined => {
  if (delivery.entry === "thin") return objects.get("thin_event", delivery.event)
  const event = objects.get("event", delivery.event)
  return event !== undefined && (delivery.apiVersion ?? target.apiVersion) === olderApiVersion
    ? inOlderVersion(objects, event)
    : event
}

interface Loaded {
  readonly payload: object
  readonly attempts: number
}

/** The event and the number of earlier attempts; undefined if it no longer needs a notification. */
const load = (
  store: Store,
  { event, scope }: PendingDelivery,
  target: WebhookTarget
): Effect.Effect<Loaded | undefined, EmulatorError> =>
  store.transact((transaction) =>
    Effect.sync(() => {
      const objects = transaction.in(scope)
      const delivery = objects.get("delivery", event)
      const payload = delivery === undefined ? undefined : payloadOf(objects, delivery, target)
      return payload === undefined || delivery?.state !== "pending"
        ? undefined
        : { payload, attempts: delivery.attempts }
    })
  )

const targetIds: Readonly<Record<Entry, string>> = { snapshot: "target", thin: "thin" }

const makeEntry = Effect.fnUntraced(function* (store: Store, entry: Entry, secret: string) {
  const stored = yield* store.transact((transaction) =>
    Effect.sync(() => transaction.in(ownScope).get("webhook", targetIds[entry]))
  )
  const target = yield* Ref.make(stored)
  const named = yield* Effect.makeLatch(stored !== undefined)
  const whenNamed: Effect.Effect<WebhookTarget> = Effect.flatMap(
    Effect.zipRight(named.await, Ref.get(target)),
    (one) => (one === undefined ? Effect.dieMessage("The latch opens once the target is named") : Effect.succeed(one))
  )
  const name = (one: WebhookTarget): Effect.Effect<void, EmulatorError> =>
    store
      .transact((transaction) => Effect.sync(() => transaction.in(ownScope).put("webhook", targetIds[entry], one)))
      .pipe(Effect.zipRight(Ref.set(target, one)), Effect.zipRight(named.open), Effect.asVoid)
  return { name, secret, whenNamed }
})

export type Secrets = Readonly<Record<Entry, string>>

/** Sends each event until its target answers 2xx, also after a restart. */
export const makeNotifier = (store: Store, secrets: Secrets): Effect.Effect<Notifier, EmulatorError, Scope.Scope> =>
  Effect.gen(function* () {
    const agent = yield* Effect.acquireRelease(
      Effect.sync(() => new Agent({ connections: concurrency })),
      (open) => Effect.promise(() => open.destroy())
    )
    const entries = {
      snapshot: yield* makeEntry(store, "snapshot", secrets.snapshot),
      thin: yield* makeEntry(store, "thin", secrets.thin)
    }
    const attempts = new Map<string, number>()

    /** Makes one attempt; true if there is nothing left to do. */
    const attempt = Effect.fnUntraced(function* (pending: PendingDelivery) {
      const { secret, whenNamed } = entries[pending.entry]
      const target = yield* whenNamed
      const loaded = yield* load(store, pending, target)
      if (loaded === undefined) return true
      const timestamp = yield* unixSeconds
      const body = JSON.stringify(loaded.payload, null, 2)
      const outcome = yield* post(agent, target.url, body, signatureHeader(secret, timestamp, body))
      const made = (attempts.get(pending.event) ?? loaded.attempts) + 1
      attempts.set(pending.event, made)
      yield* record(store, pending, made, outcome)
      if (isSuccess(outcome)) attempts.delete(pending.event)
      return isSuccess(outcome)
    })

    const resting = yield* FiberSet.make<unknown>()

    const deliver = (pending: PendingDelivery) =>
      attempt(pending).pipe(
        Effect.catchAll((error) => Effect.as(Effect.logError("A notification could not be recorded", error), false)),
        Effect.flatMap((isDone) => {
          if (isDone) return Effect.void
          const rest = Effect.zipWith(FiberSet.size(resting), Random.nextRange(0.8, 1.2), (others, jitter) =>
            Duration.times(restOf(attempts.get(pending.event) ?? 1, others), jitter)
          )
          const again = Effect.zipRight(Effect.flatMap(rest, Effect.sleep), Queue.offer(queues[pending.entry], pending))
          return FiberSet.run(resting, again)
        })
      )

    // As many fibers as attempts at a time: thousands that wait for one permit would all wake up for each
    const queues = {
      snapshot: yield* Queue.unbounded<PendingDelivery>(),
      thin: yield* Queue.unbounded<PendingDelivery>()
    }
    for (const [entry, queue] of Record.toEntries(queues)) {
      const loop = Effect.forever(Effect.flatMap(Queue.take(queue), deliver))
      const loops = Effect.replicateEffect(loop, concurrency, { concurrency, discard: true })
      yield* Effect.forkScoped(Effect.zipRight(entries[entry].whenNamed, loops))
    }
    yield* Queue.take(store.outbox).pipe(
      Effect.flatMap((pending) => Queue.offer(queues[pending.entry], pending)),
      Effect.forever,
      Effect.forkScoped
    )

    return {
      attemptsOf: (event) => attempts.get(event),
      setTarget: (entry, target) => entries[entry].name(target)
    }
  })
