import type { EndpointId, OrganizationId } from "../../kit/Ids.ts"
import { type AskedFor, queueStart } from "./Claim.ts"
import { type SlowEndpoint, usualMost } from "./EndpointPace.ts"

/**
 * How a worker's places are shared. The `concurrency` is for young attempts; there are further places for those that
 * wait for a slow answer. A slow endpoint, or an organization with many of them, gets a fraction of the free ones: the
 * more there are, the less each gets, and some places always stay free.
 */

/** Attempts in flight beyond the `concurrency`: each costs a socket, and the memory of its exchange. */
export const placesAside = 2048

/**
 * Attempts that turn out slow move aside while fewer than this are there: the last eighth is for newly due deliveries.
 */
export const mostMovedAside = (placesAside * 7) / 8

/** Slow endpoints get more attempts while fewer than this many, for all together, are in flight. */
const placesOfSlow = placesAside / 2

/** The fractions of the free places that one slow endpoint, and all of one organization's together, may hold. */
const shareOf = { endpoint: 1 / 8, organization: 1 / 4 }

/**
 * The fraction of the free places that hanging endpoints get at a time, and the fewest for each that gets any. Attempts
 * that begin together time out together, and ending a thousand at once would hold up all other attempts; this spreads
 * their beginnings and ends over the timeout.
 */
const hangingAtOnce = { share: 1 / 20, fewest: 2 }

/** The most slow endpoints that one claim asks for. */
const maxAsked = 128

/** How many newly due deliveries are taken at a time, and how many of one endpoint may then be in flight. */
const maxNewest = 256
export const newestPerEndpoint = 2

interface Caps {
  readonly concurrency: number
  readonly concurrencyPerEndpoint: number
}

/** The first concurrency cap of an unknown endpoint: the fewer places, the fewer attempts. */
export const firstAttempts = ({ concurrency, concurrencyPerEndpoint }: Caps): number =>
  Math.min(concurrencyPerEndpoint, Math.max(1, Math.min(4, Math.floor(concurrency / 16))))

/** The most attempts at once to an endpoint that is not known to answer promptly. */
export const usualCap = ({ concurrencyPerEndpoint }: Pick<Caps, "concurrencyPerEndpoint">): number =>
  Math.min(usualMost, concurrencyPerEndpoint)

/** The most attempts at once to a slow endpoint. */
export const mostToSlow = (caps: Caps): number => Math.min(caps.concurrency, usualCap(caps))

/** How many newly due deliveries may be taken, given this many attempts aside. */
export const newestRoom = (aside: number): number =>
  Math.min(maxNewest, Math.max(0, Math.ceil((placesAside - aside) / 8)))

/** The number of an endpoint's deliveries held. */
interface Held {
  readonly held: number
  readonly organizationId: OrganizationId
}

/**
 * What to claim for slow endpoints, in their order, as far as there is room. Hanging ones come last, a few attempts at
 * a time; one that does not hang, and has nothing in flight, always gets an attempt from the places for newly due
 * deliveries.
 *
 * @param slow the slow endpoints; those whose turn it is come first
 * @param lanes how many deliveries of each endpoint are held
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

/** How many attempts hanging endpoints may get at a time: all together, and each of them. */
const hangingLimits = (slow: ReadonlyMap<EndpointId, SlowEndpoint>, free: number) => {
  let count = 0
  for (const { hangs } of slow.values()) if (hangs) count += 1
  const left = Math.max(1, Math.floor(free * hangingAtOnce.share))
  return { left, ofEndpoint: Math.max(hangingAtOnce.fewest, Math.floor(left / count)) }
}
