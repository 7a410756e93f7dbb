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

/** The result of a claim, and the state of the queue. */
export interface Claim {
  readonly deliveries: ReadonlyArray<ClaimedDelivery>
  /** Milliseconds until the next delivery comes due that is not due yet; null if there is none. */
  readonly nextDueInMillis: number | null
  /** Whether more was due than the claim looked at. The next claim, with these attempts in flight, sees others. */
  readonly more: boolean
  /** Everything due before this place belongs to endpoints that were left out or asked for. */
  readonly place: QueuePlace
  /** For each endpoint asked for that has due deliveries: where they begin. */
  readonly askedFor: ReadonlyMap<EndpointId, QueuePlace>
}

/** A place in the queue: a time, as the database writes it. */
export type QueuePlace = string

/** The place before all others. */
export const queueStart: QueuePlace = "-infinity"

/** A request to claim one endpoint's deliveries, besides those next in the queue. */
export interface AskedFor {
  readonly endpointId: EndpointId
  /** Where to start the search: none of its due deliveries is before that. */
  readonly from: QueuePlace
  readonly room: number
}

export interface ClaimOptions {
  /** Never more than this many are claimed. */
  readonly limit: number
  readonly lease: Duration.Duration
  /** Attempts in flight per endpoint, including those of `inFlight`. */
  readonly perEndpoint: number
  readonly inFlight: ReadonlyMap<EndpointId, number>
  /** For endpoints of `inFlight` that are allowed less than `perEndpoint`. */
  readonly caps?: ReadonlyMap<EndpointId, number>
  /** For endpoints that are not in `inFlight`. Default `perEndpoint`. */
  readonly perNewcomer?: number
  /**
   * Which deliveries to look at besides those asked for: those due, the longest due first (the default); those that
   * came due in the last few seconds, the newest first; or none.
   */
  readonly look?: "oldest" | "newest" | "asked"
  /** Where to start the search for the oldest. Default `queueStart`. */
  readonly from?: QueuePlace
  readonly leftOut?: ReadonlyArray<EndpointId>
  /** Endpoints among those left out that are looked up separately. */
  readonly askedFor?: ReadonlyArray<AskedFor>
}

/** A claim's summary, the first row of its result. */
interface ClaimSummary {
  readonly claimedAt: number
  /** Of today's table of deliveries. */
  readonly pages: number
  /** Of the queue. */
  readonly queuePages: number
  /** How many interrupted attempts were recorded. */
  readonly interrupted: number
  readonly more: boolean
  readonly place: QueuePlace
  readonly askedFor: ReadonlyArray<readonly [EndpointId, QueuePlace]> | null
  readonly nextDueInMillis: number | null
}

/** The tables' sizes in pages at a claim. */
type TableSizes = Pick<ClaimSummary, "claimedAt" | "pages" | "queuePages">

interface ClaimedRow extends Omit<ClaimedDelivery, "lease" | "claimedAt" | "secretIds"> {
  readonly claim: null
  readonly secretIds: string
}

/** A row of a claim: the first is about the claim itself, then there is one for each delivery. */
export type ClaimRow = ClaimedRow | { readonly claim: ClaimSummary }

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

/** Reads the rows of a claim; `pages` and `queuePages` are the tables' sizes at `claimedAt`. */
export const toClaim = (rows: ReadonlyArray<ClaimRow>, lease: string): Claim & TableSizes => {
  const summary = rows[0]?.claim
  if (summary === undefined || summary === null) throw new Error("A claim does not begin with its summary")
  const deliveries: Array<ClaimedDelivery> = []
  const claim = { lease, claimedAt: summary.claimedAt }
  for (const row of rows) {
    if (row.claim !== null) continue
    deliveries.push(new DeliveryUnderLease(row, row.secretIds.split(","), row, claim))
  }
  return {
    deliveries,
    claimedAt: summary.claimedAt,
    pages: summary.pages,
    queuePages: summary.queuePages,
    nextDueInMillis: summary.nextDueInMillis,
    more: summary.more,
    place: summary.place,
    askedFor: new Map(summary.askedFor)
  }
}

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
  note({ claimedAt, pages, queuePages }: TableSizes): void {
    const day = Math.floor(claimedAt / millisPerDay) % daysApart
    this.#mark = `${day}.${fourfolds(pages)}.${fourfolds(queuePages)}`
  }
}

const fourfolds = (pages: number): number => Math.floor(Math.log2(pages + 1) / 2)
