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
 * What to ask for of slow endpoints, in their order, as far as there is room. Those that hang come last; one that does
 * not, and has nothing in flight, always gets an attempt out of what is kept for what has just come due.
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
  let kept = newestRoom(aside)
  const asked: Array<AskedFor> = []
  const askFor = (endpointId: EndpointId, { hangs, organizationId }: SlowEndpoint) => {
    const has = held.get(endpointId) ?? 0
    const inOrganization = heldOf.get(organizationId) ?? 0
    const share = Math.min(ofEndpoint - has, ofOrganization - inOrganization, free)
    const room = share <= 0 && !hangs && has === 0 && kept > 0 ? 1 : share
    if (room <= 0 || asked.length >= maxAsked) return
    if (share <= 0) kept -= 1
    asked.push({ endpointId, from: queueStart, room })
    heldOf.set(organizationId, inOrganization + room)
    free -= room
  }
  for (const hanging of [false, true]) {
    for (const [endpointId, known] of slow) if (known.hangs === hanging) askFor(endpointId, known)
  }
  return asked
}
