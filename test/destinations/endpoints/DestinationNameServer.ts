/** A DNS server on loopback that knows a few names. */
import { createSocket } from "node:dgram"
import { isIPv4 } from "node:net"
import { Effect, type Scope } from "effect"
import ipaddr from "ipaddr.js"

/**
 * What the server knows: a name's addresses, or `null` where it keeps silent. It denies every other name. `silentAbout`:
 * names of which it says nothing about one family.
 */
export type Zone = Readonly<Record<string, ReadonlyArray<string> | null>>
export type SilentAbout = Readonly<Record<string, "ipv4" | "ipv6">>

const headerBytes = 12
const recordType = { ipv4: 1, ipv6: 28 }
const noSuchName = 3

/** Answers questions of type A and AAAA from the zone. `address` is what a resolver takes as its name server. */
export const nameServer = (
  zone: Zone,
  silentAbout: SilentAbout = {}
): Effect.Effect<{ readonly address: string }, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.async<{ readonly address: string; readonly close: () => void }>((resume) => {
      const socket = createSocket("udp4")
      socket.on("message", (message, peer) => {
        const answer = answerTo(message, zone, silentAbout)
        if (answer !== null) socket.send(answer, peer.port, peer.address)
      })
      socket.bind(0, "127.0.0.1", () => {
        const address = `127.0.0.1:${socket.address().port}`
        resume(Effect.succeed({ address, close: () => void socket.close() }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )

const answerTo = (message: Buffer, zone: Zone, silentAbout: SilentAbout): Buffer | null => {
  const { end, name } = readName(message)
  const type = message.readUInt16BE(end)
  const known = zone[name]
  const silent = silentAbout[name]
  if (known === null || (silent !== undefined && type === recordType[silent])) return null
  const addresses = (known ?? []).filter((address) => type === (isIPv4(address) ? recordType.ipv4 : recordType.ipv6))
  const header = Buffer.alloc(headerBytes)
  message.copy(header, 0, 0, 2)
  header.writeUInt16BE(0x8180 | (known === undefined ? noSuchName : 0), 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(addresses.length, 6)
  return Buffer.concat([
    header,
    message.subarray(headerBytes, end + 4),
    ...addresses.map((address) => record(type, address))
  ])
}

const readName = (message: Buffer): { readonly name: string; readonly end: number } => {
  const labels: Array<string> = []
  let at = headerBytes
  for (let length = message.readUInt8(at); length > 0; length = message.readUInt8(at)) {
    labels.push(message.toString("latin1", at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join(".").toLowerCase(), end: at + 1 }
}

const record = (type: number, address: string): Buffer => {
  const bytes = Buffer.from(ipaddr.parse(address).toByteArray())
  const head = Buffer.alloc(headerBytes)
  // The name: the one in the question
  head.writeUInt16BE(0xc000 | headerBytes, 0)
  head.writeUInt16BE(type, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt32BE(60, 6)
  head.writeUInt16BE(bytes.length, 10)
  return Buffer.concat([head, bytes])
}
