import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import { count } from "../../events/Fields.ts"
import { errorSchema, RateLimitExceeded } from "../../platform/errors/Errors.ts"
import { EndpointId } from "../../platform/kit/Ids.ts"
import { DaysFromQuery, described, optional, strict } from "../../platform/kit/Request.ts"
import { integrationGet, integrationGroup } from "../endpoints/Integrations.ts"

const UtcDay = Schema.String.annotations({ description: "A day in UTC", examples: ["2026-11-23"] })

const Payments = Schema.Struct({
  count: count("The count: each event counts once"),
  amount: Schema.String.annotations({
    description: "Their sum in the smallest currency unit: a decimal integer as text, since it may exceed 2^53",
    examples: ["18000"]
  })
}).annotations({ identifier: "PaymentCount" })

export const PaymentDay = Schema.Struct({
  date: UtcDay,
  currency: described(Schema.String, "Lowercase ISO 4217 code"),
  succeeded: described(Payments, "Payments that were received"),
  failed: described(Payments, "Attempts to pay that failed, with the amount that was due"),
  refunded: described(Payments, "Refunds of charges, in part or in full"),
  refundFailed: described(Payments, "Refunds that did not reach the payer: failed or canceled since they were made")
}).annotations({ identifier: "PaymentDay" })
export type PaymentDay = typeof PaymentDay.Type

const outcomes = {
  date: UtcDay,
  delivered: count("How many have been delivered by now"),
  failed: count("How many have failed, and were not delivered since"),
  queued: count("How many still wait, for their first attempt or another one")
}

export const DeliveryDay = Schema.Struct(outcomes).annotations({ identifier: "DeliveryDay" })
export type DeliveryDay = typeof DeliveryDay.Type

export const EndpointDays = Schema.Struct({
  id: EndpointId,
  days: described(Schema.Array(DeliveryDay), "The oldest first; days without deliveries are left out")
}).annotations({ identifier: "EndpointDays" })

export const Statistics = Schema.Struct({
  from: described(UtcDay, "The first day, in UTC"),
  until: described(UtcDay, "The last day, in UTC: the current one"),
  countedUntil: described(
    Schema.Date,
    "Everything stored before this time is counted, in ISO 8601; at normal load less than a minute ago"
  ),
  payments: described(
    Schema.Array(PaymentDay),
    "By day and currency, the oldest day first; days without payments are left out"
  ),
  deliveries: described(
    Schema.Array(DeliveryDay),
    "To all endpoints, deleted ones included, by the day of their creation; days without deliveries are left out"
  ),
  endpoints: described(Schema.Array(EndpointDays), "The same for each existing endpoint, the oldest first")
}).annotations({ identifier: "Statistics" })

export const ReadStatistics = strict(Schema.Struct({ days: optional(DaysFromQuery) }))

export class StatisticsApi extends integrationGroup(
  "statistics",
  "Payments and deliveries by day, for charts of the last months"
).add(
  integrationGet("get", "/statistics", "Count payments and deliveries by day")
    .setUrlParams(ReadStatistics)
    .addSuccess(Statistics)
    .addError(errorSchema(RateLimitExceeded))
    .annotate(
      OpenApi.Description,
      "For the credential's environment. Payments are counted from events, on the day of receipt, whether or not an endpoint receives them: `payment.succeeded`, `payment.failed`, and `payment.refunded` with the amount that it adds to earlier refunds of its charge. Refunds that failed or were canceled afterwards are counted on the day on which the provider reported that, and are not subtracted. Deliveries are counted on the day of their creation, by state: one that failed and was re-sent successfully counts as delivered. Deliveries that wait or have failed are counted again each time their age has grown by half, and a minute after a re-send. Synthetic tests are left out. Counts are kept for 90 days, even for days whose deliveries have been removed."
    )
) {}
