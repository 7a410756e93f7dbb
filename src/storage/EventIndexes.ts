/**
 * Indexes for finding events when their day is not known: by public id and by payment, and refunds without a payment by
 * their charge. None of these values has an order in time: an index on the value alone would write each new event at a random
 * place of its day's index, and at ten million events a day nearly each insert would read a page anew and copy it whole into
 * the write-ahead log, 6.8 kB an event in place of 1.3. So an index is by the hour first, and a search looks into each hour.
 */

/** An index of the table of events, and so of each day's. */
interface EventIndex {
  readonly name: string
  /** Its method, and what it is by. */
  readonly on: string
}

/**
 * The payment of an event, in SQL: found in the text, which is written in one form and has such a key in `data` alone. Null
 * if it has none. Not by a regular expression, which takes twelve times as long.
 */
export const paymentOf = (payload: string): string =>
  `nullif(split_part(split_part(${payload}, '"payment_id":"', 2), '"', 1), '')`

/** The charge of an event, in the same way. */
export const chargeOf = (payload: string): string =>
  `nullif(split_part(split_part(${payload}, '"charge_id":"', 2), '"', 1), '')`

/**
 * The hour of the day, from 0 to 23, in which an event was stored. The two indexes use different types for it. If they had
 * the same type, a plan made while a day is still empty could scan the wrong index for all hours, and filter its rows.
 */
const hourOf = (event: string, type: "smallint" | "integer"): string =>
  `date_part('hour', ${event}created_at AT TIME ZONE 'UTC')::${type}`

/** 12 characters of a public id that differ: they lie within its hash, or are the end of a synthetic test's id. */
const publicIdDigits = (publicId: string): string => `substr(${publicId}, 38, 12) COLLATE "C"`

/** A hash, since a team's own events may have payments and charges with ids of any form. */
const hashOf = (id: string): string => `hashtextextended(${id}, 0)`

const eventsByPublicId: EventIndex = {
  name: "events_hour_public_id",
  on: `((${hourOf("", "smallint")}), (${publicIdDigits("public_id")}))`
}

/** Events by their payment. Those without one are not in it. */
const eventsByPayment: EventIndex = {
  name: "events_hour_payment_id",
  on: `((${hourOf("", "integer")}), (${hashOf(paymentOf("payload"))})) WHERE ${paymentOf("payload")} IS NOT NULL`
}

const isRefundWithoutPayment = (event: string): string =>
  `${event}type = 'payment.refunded' AND ${paymentOf(`${event}payload`)} IS NULL`

/** Refunds of charges that belong to no payment, by their charge: so few that their places in it don't matter. */
const refundsByCharge: EventIndex = {
  name: "events_refunds_by_charge",
  on: `((${hashOf(chargeOf("payload"))})) WHERE ${isRefundWithoutPayment("")}`
}

export const eventIndexes: ReadonlyArray<EventIndex> = [eventsByPublicId, eventsByPayment, refundsByCharge]

const hours = Array.from({ length: 24 }, (_, hour) => hour).join(",")

const anyHour = (event: string, type: "smallint" | "integer"): string =>
  `${hourOf(`${event}.`, type)} = ANY ('{${hours}}'::${type}[])`

/**
 * The condition that an event has this public id, in SQL: each day's table is searched by its index, once for each hour.
 *
 * @param event the name of the event's row
 * @param publicId the column, or another text, with the wanted one
 */
export const hasPublicId = (event: string, publicId: string): string =>
  `(${anyHour(event, "smallint")} AND ${publicIdDigits(`${event}.public_id`)} = ${publicIdDigits(publicId)}
    AND ${event}.public_id = ${publicId})`

/** The condition that an event belongs to this payment: see `hasPublicId`. */
export const hasPayment = (event: string, paymentId: string): string =>
  `(${anyHour(event, "integer")} AND ${hashOf(paymentOf(`${event}.payload`))} = ${hashOf(paymentId)}
    AND ${paymentOf(`${event}.payload`)} = ${paymentId})`

/** The condition that an event is a refund of this charge, which belongs to no payment: see `hasPublicId`. */
export const isRefundOfCharge = (event: string, chargeId: string): string =>
  `(${isRefundWithoutPayment(`${event}.`)} AND ${hashOf(chargeOf(`${event}.payload`))} = ${hashOf(chargeId)}
    AND ${chargeOf(`${event}.payload`)} = ${chargeId})`
