import { Context, Effect, Layer, Option } from "effect"
import { makeConsumer } from "../harness/Consumer.ts"
import { eventually } from "../harness/Eventually.ts"
import { TestService } from "../harness/TestService.ts"
import { makePrice, pay } from "../surface/http/Payments.ts"
import { apiBelow } from "./ConsoleBed.ts"

export const integrations = apiBelow("/integrations")

export const makeDestination = (
  name: string,
  url: string,
  events: ReadonlyArray<string>,
  filters: Readonly<Record<string, unknown>> = {}
) =>
  Effect.flatMap(integrations, ({ post }) =>
    Effect.map(post("/endpoints", { name, url, events, filters }), (created) => String(created["id"]))
  )

const limitMillis = 60_000

/** Sends a test event, and waits until its delivery has ended or waits for another attempt. Its id. */
export const sendTest = (endpointId: string, type: string) =>
  Effect.gen(function* () {
    const { get, post } = yield* integrations
    const id = String((yield* post(`/endpoints/${endpointId}/test`, { type }))["id"])
    yield* eventually(
      "the test event's first attempt",
      Effect.map(get(`/deliveries/${id}`), (delivery) =>
        Array.isArray(delivery["attempts"]) && delivery["attempts"].length > 0 ? Option.some(delivery) : Option.none()
      ),
      limitMillis
    )
    return id
  })

/** Counts of the last days, as the background work would have made them of many payments. */
const countDays = (endpointId: string) =>
  Effect.gen(function* () {
    const { organization, sql } = yield* TestService
    for (let ago = 1; ago < 30; ago += 1) {
      const busy = 12 + ((ago * 37) % 23) - (ago % 7 < 2 ? 9 : 0)
      const payments = [
        ["brl", "succeeded", busy, busy * 8_450],
        ["brl", "failed", ago % 5, (ago % 5) * 4_900],
        ["brl", "refunded", ago % 4 === 0 ? 1 : 0, ago % 4 === 0 ? 4_900 : 0],
        ["jpy", "succeeded", ago % 6, (ago % 6) * 3_200]
      ] as const
      for (const [currency, kind, count, amount] of payments) {
        if (count === 0) continue
        yield* sql`
          INSERT INTO payments.payment_counts (organization_id, environment, day, pass, slot, currency, kind, count, amount)
          SELECT ${organization.id}, 'sandbox', day, 0, day::timestamp AT TIME ZONE 'UTC', ${currency}, ${kind}, ${count}, ${amount}
          FROM (SELECT (now() AT TIME ZONE 'UTC')::date - ${ago}::int AS day) AS days
          ON CONFLICT DO NOTHING`
      }
      yield* sql`
        INSERT INTO payments.delivery_counts (organization_id, environment, day, pass, slot, endpoint_id, delivered, failed, queued)
        SELECT ${organization.id}, 'sandbox', day, 0, day::timestamp AT TIME ZONE 'UTC', ${endpointId}, ${busy}, ${ago % 9 === 0 ? 4 : 0}, 0
        FROM (SELECT (now() AT TIME ZONE 'UTC')::date - ${ago}::int AS day) AS days
          ON CONFLICT DO NOTHING`
    }
    yield* sql`
      INSERT INTO payments.failed_refunds (organization_id, environment, refund_id, amount, currency, status, mail_at)
      SELECT ${organization.id}, 'sandbox', 're_' || n, 4900, 'brl', 'failed', NULL FROM generate_series(1, 2) AS n
      ON CONFLICT DO NOTHING`
  })

const busyWorkspace = Effect.gen(function* () {
  const service = yield* TestService
  const { organization } = service
  const { get, patch } = yield* integrations
  const consumer = yield* makeConsumer
  const shop = yield* makeDestination("Shop", consumer.url, [
    "payment.succeeded",
    "payment.refunded",
    "checkout.completed"
  ])
  // Answers so for good: its deliveries wait for one attempt after the other, for hours
  const down = yield* makeConsumer
  down.answer(503)
  const accounting = yield* makeDestination("Accounting", down.url, ["payment.succeeded", "payout.paid"], {
    currencies: ["brl"],
    amountMin: 500,
    metadata: { svc_checkout_page: "coffee" }
  })
  const paused = yield* makeDestination("Old shop", consumer.url, ["payment.succeeded"])
  yield* patch(`/endpoints/${paused}`, { active: false })
  const delivered = yield* sendTest(shop, "payment.succeeded")
  consumer.answer(404)
  const failed = yield* sendTest(shop, "payment.refunded")
  const waiting = yield* sendTest(accounting, "payout.paid")
  consumer.answer(204)
  const tenant = { organizationId: organization.id, key: organization.testKey }
  yield* pay(service, { ...tenant, priceId: yield* makePrice(service, tenant) })
  const event = yield* eventually(
    "the payment's event",
    Effect.map(get("/events?type=payment.succeeded"), ({ data }) =>
      // Not one of the tests
      Option.fromNullable(Array.isArray(data) ? data.find(({ test }) => test === false) : undefined).pipe(
        Option.map(({ id }) => String(id))
      )
    ),
    limitMillis
  )
  yield* countDays(shop)
  return { accounting, shop, delivered, failed, waiting, event }
})

export class BusyWorkspace extends Context.Tag("test/console/BusyWorkspace")<
  BusyWorkspace,
  Effect.Effect.Success<typeof busyWorkspace>
>() {
  static readonly layer = Layer.scoped(BusyWorkspace, Effect.orDie(busyWorkspace))
}
