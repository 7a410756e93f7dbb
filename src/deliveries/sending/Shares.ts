import type { EndpointId, OrganizationId } from "../../kit/Ids.ts"
import { type AskedFor, queueStart } from "./Claim.ts"
import { type SlowEndpoint, usualMost } from "./EndpointPace.ts"

/**
 * Who gets how many of a worker's places. The `concurrency` is for attempts that are young; in addition there are
 * places for those that wait for a slow answer. A slow endpoint, or an organization with many of them, gets a fraction
 * of the free ones: so the more there are, the less each gets, and something is always left.
 */

/** Attempts in flight in addition to the `concurrency`: each costs a socket, and the memory of its exchange. */
export const placesAside = 2048

/** Attempts that turn out slow go aside while fewer are there: the last eighth is for what has just come due. */
export const mostMovedAside = (placesAside * 7) / 8

/** Slow endpoints are given more attempts while they have fewer than this in flight, all together. */
const placesOfSlow = placesAside / 2

/** The fractions of what is free that one slow endpoint, and all of one organization's together, may hold. */
const shareOf = { endpoint: 1 / 8, organization: 1 / 4 }

/**
 * The fraction of what is free that endpoints that hang are given at a time, and the fewest for each that gets any. What
 * begins together times out together, and a thousand ends at once would hold up everybody else's attempts: this way,
 * beginnings and ends spread over the time-out.
 */
const hangingAtOnce = { share: 1 / 20, fewest: 2 }

/** How many slow endpoints are asked for at a time. */
const maxAsked = 128

/** How many of what has just come due are taken at a time, and how many of one endpoint's may be in flight then. */
const maxNewest = 256
export const newestPerEndpoint = 2

interface Caps {
  readonly concurrency: number
  readonly concurrencyPerEndpoint: number
}

/** How many attempts at once an endpoint about which nothing is known gets: the fewer places, the fewer attempts. */
export const firstAttempts = ({ concurrency, concurrencyPerEndpoint }: Caps): number =>
  Math.min(concurrencyPerEndpoint, Math.max(1, Math.min(4, Math.floor(concurrency / 16))))

/** The most attempts at once to an endpoint that is not known to answer promptly. */
export const usualCap = ({ concurrencyPerEndpoint }: Pick<Caps, "concurrencyPerEndpoint">): number =>
  Math.min(usualMost, concurrencyPerEndpoint)

/** The most attempts at once to a slow endpoint. */
export const mostToSlow = (caps: Caps): number => Math.min(caps.concurrency, usualCap(caps))

/** How many of what has just come due may be taken, given this many attempts aside. */
export const newestRoom = (aside: number): number =>
  Math.min(maxNewest, Math.max(0, Math.ceil((placesAside - aside) / 8)))

/** What is held of an endpoint's deliveries. */
interface Held {
  readonly held: number
  readonly organizationId: OrganizationId
}

/**
 * What to ask for of slow endpoints, in their order, as far as there is room. Those that hang come last, a few attempts
 * at a time; one that does not, and has nothing in flight, always gets an attempt out of what is kept for what has just
 * come due.
 *
 * @param slow the slow endpoints; those whose turn it is come first
 * @param lanes what is held of each endpoint's deliveries
 * @param aside how many attempts are aside
 */
export const slowRooms = (
  slow: ReadonlyMap<EndpointId, SlowEndpoint>,
  lanes: Iterable<readonly [EndpointId, Held]>,
  aside: number,
  caps: Caps
): ReadonlyArray<AskedFor> => {
  const held = new Map<EndpointId, number>()
  const heldOf = new Map<OrganizationId, number>()
  let free = placesOfSlow
  for (const [endpointId, lane] of lanes) {
    if (!slow.has(endpointId)) continue
    free -= lane.held
    held.set(endpointId, lane.held)
    heldOf.set(lane.organizationId, (heldOf.get(lane.organizationId) ?? 0) + lane.held)
  }
  const ofEndpoint = Math.min(mostToSlow(caps), Math.max(1, Math.floor(free * shareOf.endpoint)))
  const ofOrganization = Math.max(1, Math.floor(free * shareOf.organization))
  const hanging = hangingLimits(slow, free)
  let kept = newestRoom(aside)
  const asked: Array<AskedFor> = []
  const askFor = (endpointId: EndpointId, { hangs, organizationId }: SlowEndpoint) => {
    const has = held.get(endpointId) ?? 0
    const inOrganization = heldOf.get(organizationId) ?? 0
    const most = hangs ? Math.min(hanging.ofEndpoint, hanging.left) : free
    const share = Math.min(ofEndpoint - has, ofOrganization - inOrganization, free, most)
    const room = share <= 0 && !hangs && has === 0 && kept > 0 ? 1 : share
    if (room <= 0 || asked.length >= maxAsked) return
    if (share <= 0) kept -= 1
    asked.push({ endpointId, from: queueStart, room })
    heldOf.set(organizationId, inOrganization + room)
    free -= room
    if (hangs) hanging.left -= room
  }
  for (const hangs of [false, true]) {
    for (const [endpointId, known] of slow) if (known.hangs === hangs) askFor(endpointId, known)
  }
  return asked
}

/** How many attempts endpoints that hang may be given at once: all together, and each of them. */
const hangingLimits = (slow: ReadonlyMap<EndpointId, SlowEndpoint>, free: number) => {
  let count = 0
  for (const { hangs } of slow.values()) if (hangs) count += 1
  const left = Math.max(1, Math.floor(free * hangingAtOnce.share))
  return { left, ofEndpoint: Math.max(hangingAtOnce.fewest, Math.floor(left / count)) }
}
