import type { SqlClient, Statement } from "@effect/sql"
import type { Duration } from "effect"
import type { Encrypted } from "../../platform/kit/Cipher.ts"
import type { DeliveryId, EndpointId } from "../../platform/kit/Ids.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import type { AttemptTrigger } from "./Enqueue.ts"
import type { LeasedDelivery } from "./LocalHandOff.ts"

/** Claims: their options and results, and the form of these in the database. */

/** A claimed delivery, with everything its attempt needs except the data shared by endpoint: see `Destination`. */
export interface ClaimedDelivery extends Tenant {
  readonly id: DeliveryId
  readonly lease: string
  /**
   * The place of its row in the queue when it was leased: PostgreSQL's `ctid`. It is valid unless the table is
   * rewritten.
   */
  readonly ctid: string
  /** The number of the attempt to make, from 1. */
  readonly attempt: number
  /** How many attempts before it were interrupted since it was queued. */
  readonly interrupted: number
  readonly trigger: AttemptTrigger
  readonly endpointId: EndpointId
  readonly eventId: string
  /** The secrets that are bound to it, newest first. */
  readonly secretIds: ReadonlyArray<string>
  /** When it was queued and when it was claimed, in Unix milliseconds by the database's clock. */
  readonly createdAt: number
  readonly claimedAt: number
  /** The exact text to sign and send. */
  readonly payload: string
  readonly traceparent: string | null
}

/** The data shared by all deliveries to an endpoint. */
export interface Destination {
  readonly url: string
  /** Deleted: its secrets are erased, and nothing more is sent to it. */
  readonly isDeleted: boolean
  readonly secrets: ReadonlyArray<StoredSecret>
}

export interface StoredSecret {
  readonly id: string
  readonly encrypted: Encrypted
  /** When a rotation replaced it, in Unix milliseconds; null while it is the current one. */
  readonly retiredAt: number | null
}

/** A place in the queue: a time, as the database writes it. */
export type QueuePlace = string

/** The place before all others. */
export const queueStart: QueuePlace = "-infinity"

/** A claim of deliveries that came due lately, whatever their endpoints. */
export interface ClaimNew {
  /** Where to begin: deliveries that came due before are found in their lanes. */
  readonly since: QueuePlace
  /** Never more than this many are claimed. */
  readonly limit: number
  /** Nor more than this many of one endpoint. */
  readonly perEndpoint: number
  /** Endpoints whose deliveries are left to their lanes. */
  readonly leftOut: ReadonlyArray<EndpointId>
  readonly lease: Duration.Duration
}

export interface NewClaim {
  readonly deliveries: ReadonlyArray<ClaimedDelivery>
  /** Where the next such claim begins. */
  readonly next: QueuePlace
  /** The endpoints of due deliveries that it saw and did not take. */
  readonly waiting: ReadonlyArray<EndpointId>
  /** Whether it saw as many as it can: there may be more. */
  readonly isFull: boolean
  /** Milliseconds until the next delivery comes due that is not due yet; null if there is none. */
  readonly nextDueInMillis: number | null
}

/** What to claim of one endpoint's due deliveries. */
export interface LaneShare {
  readonly endpointId: EndpointId
  /** Where to begin: none of its due deliveries that nobody holds is before that. */
  readonly from: QueuePlace
  /** How many at most. */
  readonly room: number
}

/** A claim of these endpoints' due deliveries, the longest due first. */
export interface ClaimOfLanes {
  readonly lanes: ReadonlyArray<LaneShare>
  readonly lease: Duration.Duration
}

export interface LanesClaim {
  readonly deliveries: ReadonlyArray<ClaimedDelivery>
  /**
   * The endpoints that have due deliveries which nobody holds: where they begin, and how many were found, taken or not,
   * up to its room.
   */
  readonly found: ReadonlyArray<{
    readonly endpointId: EndpointId
    readonly first: QueuePlace
    readonly count: number
  }>
}

/** What a sweep found: it visits endpoints that have waiting deliveries, in the order of their ids. */
export interface Sweep {
  /** The last one visited; null if there are no more. */
  readonly last: EndpointId | null
  /** Those with due deliveries that nobody holds. */
  readonly due: ReadonlyArray<EndpointId>
}

/** What each claim says besides its deliveries: the tables' sizes in pages at that time. */
interface ClaimSummary {
  readonly claimedAt: number
  /** Of today's table of deliveries. */
  readonly pages: number
  /** Of the queue. */
  readonly queuePages: number
}

interface ClaimedRow extends Omit<ClaimedDelivery, "lease" | "claimedAt" | "secretIds"> {
  readonly claim: null
  readonly secretIds: string
}

interface SummaryRow<Claim> {
  readonly claim: ClaimSummary & Omit<Claim, "deliveries">
}

/** A row of a claim: the first is about the claim itself, then there is one for each delivery. */
export type ClaimRow<Claim> = ClaimedRow | SummaryRow<Claim>

/** A class rather than an object literal, for V8: see `Exchange`. */
export class DeliveryUnderLease implements ClaimedDelivery {
  readonly organizationId
  readonly environment
  readonly id
  readonly lease
  readonly ctid
  readonly attempt
  readonly interrupted
  readonly trigger
  readonly endpointId
  readonly eventId
  readonly secretIds
  readonly createdAt
  readonly claimedAt
  readonly payload
  readonly traceparent

  constructor(
    of: Omit<LeasedDelivery, "secretIds">,
    secretIds: ReadonlyArray<string>,
    {
      attempt,
      createdAt,
      interrupted,
      trigger
    }: Pick<ClaimedDelivery, "attempt" | "createdAt" | "interrupted" | "trigger">,
    { claimedAt, lease }: Pick<ClaimedDelivery, "claimedAt" | "lease">
  ) {
    this.organizationId = of.organizationId
    this.environment = of.environment
    this.id = of.id
    this.lease = lease
    this.ctid = of.ctid
    this.attempt = attempt
    this.interrupted = interrupted
    this.trigger = trigger
    this.endpointId = of.endpointId
    this.eventId = of.eventId
    this.secretIds = secretIds
    this.createdAt = createdAt
    this.claimedAt = claimedAt
    this.payload = of.payload
    this.traceparent = of.traceparent
  }
}

/** Reads the rows of a claim under this lease. */
export const readClaim = <Claim>(rows: ReadonlyArray<ClaimRow<Claim>>, lease: string) => {
  const [first] = rows
  if (first === undefined || isDelivery(first)) throw new Error("A claim does not begin with its summary")
  const deliveries: Array<ClaimedDelivery> = []
  const claim = { lease, claimedAt: first.claim.claimedAt }
  for (const row of rows) {
    if (isDelivery(row)) deliveries.push(new DeliveryUnderLease(row, row.secretIds.split(","), row, claim))
  }
  return { ...first.claim, deliveries }
}

const isDelivery = <Claim>(row: ClaimRow<Claim>): row is ClaimedRow => row.claim === null

/**
 * A PostgreSQL array as text, of values that need no quotes: numbers, ids, names of ours. Far cheaper than the client's
 * own conversion, which inspects the type of each value.
 */
export const arrayOf = <A>(rows: ReadonlyArray<A>, value: (row: A) => string | number | null): string => {
  let text = "{"
  for (const row of rows) {
    const item = value(row)
    text += text.length > 1 ? `,${item === null ? "NULL" : item}` : item === null ? "NULL" : item
  }
  return `${text}}`
}

/** An endpoint as read from its row. */
export interface StoredDestination {
  readonly endpointId: EndpointId
  readonly url: string
  readonly isDeleted: boolean
  readonly secrets: ReadonlyArray<{
    readonly id: string
    readonly masterKeyId: string
    readonly ciphertext: string
    readonly retiredAt: number | null
  }> | null
}

export const toSecret = ({
  ciphertext,
  id,
  masterKeyId,
  retiredAt
}: NonNullable<StoredDestination["secrets"]>[number]): StoredSecret => ({
  id,
  encrypted: { masterKeyId, ciphertext: Buffer.from(ciphertext, "base64") },
  retiredAt
})

const millisPerDay = 24 * 3600 * 1000

/**
 * Days repeat after this many: by then, every plan has been renewed anyway, since adding a day's tables invalidates all
 * plans that use them.
 */
const daysApart = 8

/**
 * Renews the queue's statement plans. PostgreSQL keeps the plan of a prepared statement, and a plan made while a table
 * was empty would read all of it every time. So each statement's text states how far the day's table of deliveries and
 * the queue have grown, and it is planned anew when that changes.
 */
export class Plans {
  readonly #sql: SqlClient.SqlClient
  #mark = "0"

  constructor(sql: SqlClient.SqlClient) {
    this.#sql = sql
  }

  /** A comment to include in each statement. */
  get mark(): Statement.Fragment {
    return this.#sql.literal(`/* ${this.#mark} */`)
  }

  /** Records the tables' sizes in pages at a claim. The mark counts how many times each has grown fourfold. */
  note({ claimedAt, pages, queuePages }: ClaimSummary): void {
    const day = Math.floor(claimedAt / millisPerDay) % daysApart
    this.#mark = `${day}.${fourfolds(pages)}.${fourfolds(queuePages)}`
  }
}

const fourfolds = (pages: number): number => Math.floor(Math.log2(pages + 1) / 2)
