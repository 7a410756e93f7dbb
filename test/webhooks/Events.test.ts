import { readdirSync, readFileSync } from "node:fs"
import { describe, expect, expectTypeOf, it } from "@effect/vitest"
import type { ALBEvent, APIGatewayProxyEvent, APIGatewayProxyEventV2 } from "aws-lambda"
import { Schema } from "effect"
import type { OutboundEventData } from "../../src/destinations/publishing/OutboundEvents.ts"
import { type EventData, EventType } from "../../src/events/Catalog.ts"
import type { Envelope } from "../../src/events/Envelope.ts"
import { webhookTypes, webhookTypesPath } from "../../src/surface/docs/WebhookTypes.ts"
import {
  type CheckoutData,
  fetchWebhookHandler,
  isKnownWebhookEvent,
  type KnownWebhookEvent,
  koaWebhookHandler,
  type LambdaWebhookEvent,
  nodeWebhookHandler,
  type PaymentSucceededData,
  type UnknownWebhookEvent,
  verifyWebhook,
  type WebhookEvent,
  type WebhookEventData,
  type WebhookEventOf,
  type WebhookEventType,
  type WebhookHandlerOptions
} from "../../src/webhooks/index.ts"
import { body, envelope, later, secret, sign } from "./Deliveries.ts"

// These hold at compile time: `tsc` fails where the kit and the service's schemas part ways

describe("the kit's types", () => {
  it("are those of the service's schemas", () => {
    expectTypeOf<WebhookEventType>().toEqualTypeOf<EventType>()
    expectTypeOf<WebhookEventData>().toEqualTypeOf<{ readonly [T in EventType]: EventData<T> }>()
    expectTypeOf<KnownWebhookEvent>().toEqualTypeOf<Envelope>()
    expectTypeOf<KnownWebhookEvent>().toExtend<Envelope>()
    expectTypeOf<Envelope>().toExtend<KnownWebhookEvent>()
  })

  it("narrow to one type's data by comparing `type`, and to the fallback by `isKnownWebhookEvent`", () => {
    const seen = (event: WebhookEvent): string => {
      if (!isKnownWebhookEvent(event)) {
        expectTypeOf(event).toEqualTypeOf<UnknownWebhookEvent>()
        return "unknown"
      }
      expectTypeOf(event).toEqualTypeOf<KnownWebhookEvent>()
      return event.type
    }
    const payment = (event: WebhookEvent): string | null => {
      switch (event.type) {
        case "payment.succeeded":
          expectTypeOf(event).toEqualTypeOf<WebhookEventOf<"payment.succeeded">>()
          expectTypeOf(event.data).toEqualTypeOf<PaymentSucceededData>()
          return event.data.payment_id
        case "checkout.completed":
          expectTypeOf(event.data).toEqualTypeOf<CheckoutData>()
          return event.data.payment_id
        default:
          // What is left still holds the fallback, so that a consumer must leave room for it
          expectTypeOf<UnknownWebhookEvent>().toExtend<typeof event>()
          return null
      }
    }
    const event = verifyWebhook({ body, header: sign(body), secret, now: later() })
    expect(seen(event)).toBe("payment.succeeded")
    expect(payment(event)).toBe("pi_1")
  })
})

interface ShopEvents {
  readonly "order.shipped": { readonly order_id: string }
}

describe("a sender's own types", () => {
  it("are those of its catalog, and narrow beside the kit's", () => {
    const order = { type: "order.shipped", description: "", data: Schema.Struct({ order_id: Schema.String }) } as const
    const [free] = [{ type: "order.lost", description: "" }] as const
    expectTypeOf<OutboundEventData<readonly [typeof order]>>().toEqualTypeOf<ShopEvents>()
    expectTypeOf<OutboundEventData<readonly [typeof free]>["order.lost"]>().toEqualTypeOf<{
      readonly [name: string]: unknown
    }>()
    const seen = (event: WebhookEvent<ShopEvents>): string | undefined => {
      if (event.type === "payment.succeeded") expectTypeOf(event.data).toEqualTypeOf<PaymentSucceededData>()
      if (isKnownWebhookEvent(event)) expectTypeOf(event).toEqualTypeOf<KnownWebhookEvent>()
      return event.type === "order.shipped" ? event.data.order_id : undefined
    }
    const text = JSON.stringify({ ...envelope, type: "order.shipped", data: { order_id: "o-1" } })
    expect(seen(verifyWebhook<ShopEvents>({ body: text, header: sign(text), secret, now: later() }))).toBe("o-1")
    const { onEvent }: Pick<WebhookHandlerOptions<ShopEvents>, "onEvent"> = { onEvent: seen }
    for (const make of [
      nodeWebhookHandler<ShopEvents>,
      koaWebhookHandler<ShopEvents>,
      fetchWebhookHandler<ShopEvents>
    ]) {
      expect(make({ secret, onEvent })).toBeTypeOf("function")
    }
  })
})

describe("Lambda's events", () => {
  it("are those of API Gateway and the load balancer, as their own types say", () => {
    expectTypeOf<APIGatewayProxyEvent>().toExtend<LambdaWebhookEvent>()
    expectTypeOf<APIGatewayProxyEventV2>().toExtend<LambdaWebhookEvent>()
    expectTypeOf<ALBEvent>().toExtend<LambdaWebhookEvent>()
  })
})

describe("the kit's catalog", () => {
  it("knows each of the contract's 19 types, and no other", () => {
    expect(EventType.literals.length).toBe(19)
    for (const type of [...EventType.literals, "payment.invented", "toString"]) {
      const text = JSON.stringify({ ...envelope, type })
      const event = verifyWebhook({ body: text, header: sign(text), secret, now: later() })
      expect([type, isKnownWebhookEvent(event)]).toEqual([type, EventType.literals.some((known) => known === type)])
    }
  })
})

describe("the kit's modules", () => {
  it("of `data` are up to date with the catalog: `npm run docs` writes them", () => {
    expect(readFileSync(new URL(`../../src/${webhookTypesPath}`, import.meta.url), "utf8")).toBe(webhookTypes())
  })

  it("import nothing but node:crypto, types of node:http and each other, so that a consumer can take them alone", () => {
    const folder = new URL("../../src/webhooks/", import.meta.url)
    const files = readdirSync(folder).filter((file) => file.endsWith(".ts"))
    expect(files).toEqual(expect.arrayContaining(["Events.ts", "Verify.ts", "index.ts"]))
    for (const file of files) {
      const source = readFileSync(new URL(file, folder), "utf8")
      const values = source.replaceAll(/^import type .* from "node:http"$/gm, "")
      const imported = [...values.matchAll(/^(?:import|export|\}).*?(?:from|import)\s*\(?\s*"([^"]+)"/gm)].map(
        ([, name]) => name
      )
      expect(imported.filter((name) => !/^(node:crypto|\.\/[A-Za-z]+\.ts)$/.test(name ?? ""))).toEqual([])
    }
  })
})
