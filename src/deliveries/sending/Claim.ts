import type { Duration } from "effect"
import type { Encrypted } from "../../kit/Cipher.ts"
import type { DeliveryId, EndpointId } from "../../kit/Ids.ts"
import type { Tenant } from "../../kit/Tenant.ts"
import type { AttemptTrigger } from "../../publishing/Enqueue.ts"
import type { LeasedDelivery } from "../../publishing/LocalHandOff.ts"

/** The queue's requests and answers, and their form in the database. */

/** A claimed delivery, with all that its attempt needs except what it shares with others: see `Destination`. */
export interface ClaimedDelivery extends Tenant {
  readonly id: DeliveryId
  readonly lease: string
  /** Where its row was in the queue when it was leased: PostgreSQL's `ctid`. It stays there, unless the table is rewritten. */
  readonly ctid: string
  /** The number of the attempt to make, from 1. */
  readonly attempt: number
  /** How many attempts before it were abandoned since it was queued. */
  readonly abandoned: number
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

/** What all deliveries to an endpoint share. */
export interface Destination {
  readonly url: string
  /** Its secrets are erased, and nothing is sent to it any more. */
  readonly isDeleted: boolean
  readonly secrets: ReadonlyArray<StoredSecret>
}

export interface StoredSecret {
  readonly id: string
  readonly encrypted: Encrypted
  /** When a rotation replaced it, in Unix milliseconds; null while it is the current one. */
  readonly retiredAt: number | null
}

/** What a claim took, and where the queue stands. */
export interface Claim {
  readonly deliveries: ReadonlyArray<ClaimedDelivery>
  /** Time until the next delivery comes due that is not due yet, in milliseconds; null if none waits. */
  readonly nextDueInMillis: number | null
  /** Whether more was due than the claim looked at: the next one, with these attempts in flight, sees others. */
  readonly more: boolean
  /** All that was due before this place belongs to the endpoints that were left out or asked for. */
  readonly place: QueuePlace
  /** For each endpoint that was asked for and has something due: where its due deliveries begin. */
  readonly askedFor: ReadonlyMap<EndpointId, QueuePlace>
}

/** A place in the queue: a time, as the database writes it. */
export type QueuePlace = string

/** The place before all others. */
export const queueStart: QueuePlace = "-infinity"

/** One endpoint's deliveries, to be claimed in addition to what comes next. */
export interface AskedFor {
  readonly endpointId: EndpointId
  /** Where to begin to look: none of its due deliveries stands before that. */
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
   * What to look at, in addition to the endpoints that are asked for: what is due, the longest due first (the default);
   * what came due in the last few seconds, the newest first; or nothing else.
   */
  readonly look?: "oldest" | "newest" | "asked"
  /** Where to begin to look for the oldest. Default `queueStart`. */
  readonly from?: QueuePlace
  readonly leftOut?: ReadonlyArray<EndpointId>
  /** Endpoints among those left out that are looked up separately. */
  readonly askedFor?: ReadonlyArray<AskedFor>
}

/** A claim's own summary, the first row of its answer. */
interface ClaimSummary {
  readonly claimedAt: number
  /** Of today's table of deliveries. */
  readonly pages: number
  /** Of the queue. */
  readonly queuePages: number
  /** How many abandoned attempts were recorded. */
  readonly interrupted: number
  readonly more: boolean
  readonly place: QueuePlace
  readonly askedFor: ReadonlyArray<readonly [EndpointId, QueuePlace]> | null
  readonly nextDueInMillis: number | null
}

interface ClaimedRow extends Omit<ClaimedDelivery, "lease" | "claimedAt" | "secretIds"> {
  readonly claim: null
  readonly secretIds: string
}

/** A row of a claim: the first is about the claim itself, then there is one for each delivery. */
export type ClaimRow = ClaimedRow | { readonly claim: ClaimSummary }

/** A class for the same reason as an exchange's parameters. */
export class DeliveryUnderLease implements ClaimedDelivery {
  readonly organizationId
  readonly environment
  readonly id
  readonly lease
  readonly ctid
  readonly attempt
  readonly abandoned
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
      abandoned,
      attempt,
      createdAt,
      trigger
    }: Pick<ClaimedDelivery, "abandoned" | "attempt" | "createdAt" | "trigger">,
    { claimedAt, lease }: Pick<ClaimedDelivery, "claimedAt" | "lease">
  ) {
    this.organizationId = of.organizationId
    this.environment = of.environment
    this.id = of.id
    this.lease = lease
    this.ctid = of.ctid
    this.attempt = attempt
    this.abandoned = abandoned
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
export const toClaim = (
  rows: ReadonlyArray<ClaimRow>,
  lease: string
): Claim & Pick<ClaimSummary, "claimedAt" | "pages" | "queuePages"> => {
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
