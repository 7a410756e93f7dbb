/**
 * Indexes for finding events whose day is unknown: by public id and by payment, and refunds without a payment by their
 * charge. None of these values is ordered in time. An index on the value alone would write each new event at a random
 * place in its day's index: at ten million events a day, nearly each insert would read a page again and copy it whole
 * into the write-ahead log, 6.8 kB per event instead of 1.3. So the hour is the first column of these indexes, and a
 * search looks into each hour.
 */

interface EventIndex {
  readonly name: string
  readonly on: string
}

/**
 * The payment of an event, in SQL: extracted from the JSON text, which is always written in the same form and has this
 * key only in `data`. Null if there is none. A regular expression takes twelve times as long.
 */
export const paymentOf = (payload: string): string =>
  `nullif(split_part(split_part(${payload}, '"payment_id":"', 2), '"', 1), '')`

/** The charge of an event, extracted like `paymentOf`. */
export const chargeOf = (payload: string): string =>
  `nullif(split_part(split_part(${payload}, '"charge_id":"', 2), '"', 1), '')`

/**
 * The hour of the day, from 0 to 23, in which an event was stored. The two indexes use different types for it. With the
 * same type, a plan made while a day is still empty could scan the wrong index for all hours, and filter its rows.
 */
const hourOf = (event: string, type: "smallint" | "integer"): string =>
  `date_part('hour', ${event}created_at AT TIME ZONE 'UTC')::${type}`

/** 12 distinguishing characters of a public id: part of its hash, or the end of a synthetic test's id. */
const publicIdDigits = (publicId: string): string => `substr(${publicId}, 38, 12) COLLATE "C"`

/** Hashed because a team's own events may have payment and charge ids of any form. */
const hashOf = (id: string): string => `hashtextextended(${id}, 0)`

const eventsByPublicId: EventIndex = {
  name: "events_hour_public_id",
  on: `((${hourOf("", "smallint")}), (${publicIdDigits("public_id")}))`
}

/** Events by their payment; events without one are not indexed. */
const eventsByPayment: EventIndex = {
  name: "events_hour_payment_id",
  on: `((${hourOf("", "integer")}), (${hashOf(paymentOf("payload"))})) WHERE ${paymentOf("payload")} IS NOT NULL`
}

const isRefundWithoutPayment = (event: string): string =>
  `${event}type = 'payment.refunded' AND ${paymentOf(`${event}payload`)} IS NULL`

/** Refunds of charges that belong to no payment, by charge: so few that the order does not matter. */
const refundsByCharge: EventIndex = {
  name: "events_refunds_by_charge",
  on: `((${hashOf(chargeOf("payload"))})) WHERE ${isRefundWithoutPayment("")}`
}

export const eventIndexes: ReadonlyArray<EventIndex> = [eventsByPublicId, eventsByPayment, refundsByCharge]

const hours = Array.from({ length: 24 }, (_, hour) => hour).join(",")

const anyHour = (event: string, type: "smallint" | "integer"): string =>
  `${hourOf(`${event}.`, type)} = ANY ('{${hours}}'::${type}[])`

/**
 * SQL condition: the event has this public id. It searches each day's table by its index, once for each hour.
 *
 * @param event the name of the event's row
 * @param publicId the column, or another SQL text, with the wanted one
 */
export const hasPublicId = (event: string, publicId: string): string =>
  `(${anyHour(event, "smallint")} AND ${publicIdDigits(`${event}.public_id`)} = ${publicIdDigits(publicId)}
    AND ${event}.public_id = ${publicId})`

/** SQL condition: the event belongs to this payment. See `hasPublicId`. */
export const hasPayment = (event: string, paymentId: string): string =>
  `(${anyHour(event, "integer")} AND ${hashOf(paymentOf(`${event}.payload`))} = ${hashOf(paymentId)}
    AND ${paymentOf(`${event}.payload`)} = ${paymentId})`

/** SQL condition: the event is a refund of this charge, which belongs to no payment. See `hasPublicId`. */
export const isRefundOfCharge = (event: string, chargeId: string): string =>
  `(${isRefundWithoutPayment(`${event}.`)} AND ${hashOf(chargeOf(`${event}.payload`))} = ${hashOf(chargeId)}
    AND ${chargeOf(`${event}.payload`)} = ${chargeId})`
