import { hash } from "node:crypto"

/** Public ids that end with a hash, whose first digits are as good as any other hash. */
const hashed = /^svc_evt_([0-9a-f]{18})/

const digitsOf = (eventId: string): string => hashed.exec(eventId)?.[1] ?? hash("sha256", eventId, "hex").slice(0, 18)

/**
 * The id of an event in the database: a UUIDv7 with the time of its receipt, whose random part is a hash of its public
 * id. So new events are stored next to each other, those of a day in one table, and the same event and time always give
 * the same key. The public id is a hash: as a key, it would scatter new rows over an index that outgrows memory.
 */
export const eventKey = (eventId: string, receivedAt: Date): string => {
  const millis = Math.max(0, receivedAt.getTime()).toString(16).padStart(12, "0")
  const digits = digitsOf(eventId)
  return `${millis.slice(0, 8)}-${millis.slice(8)}-7${digits.slice(0, 3)}-8${digits.slice(3, 6)}-${digits.slice(6)}`
}
