import type { LeasedDelivery, Recipient } from "../../../src/engine/queue/Enqueue.ts"

/** A recipient with so many places; `taken` is what it was handed, `free` how many places it has left. */
export const recipientWith = (places: number) => {
  let free = places
  const taken: Array<LeasedDelivery> = []
  const recipient: Recipient = {
    leaseMillis: 15_000,
    reserve: () => {
      if (free === 0) return false
      free -= 1
      return true
    },
    release: () => {
      free += 1
    },
    take: (deliveries) => {
      free += deliveries.length
      taken.push(...deliveries)
    }
  }
  return { recipient, taken, free: () => free }
}
