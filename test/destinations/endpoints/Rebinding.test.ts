import { Effect } from "effect"
import {
  DnsResolver,
  parseDestination,
  publicAddressesOnly,
  resolveDestination
} from "../../../src/engine/transport/DestinationUrl.ts"
import { httpConsumer, post, transport } from "../../engine/TransportServers.ts"
import { describe, expect, it } from "../../harness/Tests.ts"
import { nameServer } from "./DestinationNameServer.ts"

const url = "https://rebind.example/hook"

/** Where an attacker's name server points its name once the endpoint was made. */
const inside: ReadonlyArray<{ readonly addresses: ReadonlyArray<string> }> = [
  { addresses: ["127.0.0.1"] },
  { addresses: ["10.0.0.1"] },
  { addresses: ["169.254.169.254"] },
  { addresses: ["93.184.215.14", "127.0.0.1"] },
  { addresses: ["127.0.0.1", "93.184.215.14"] },
  { addresses: ["::1"] },
  { addresses: ["::ffff:127.0.0.1"] },
  { addresses: ["64:ff9b::7f00:1"] },
  { addresses: ["fd00:ec2::254"] },
  { addresses: ["2606:4700:4700::1111", "fe80::1"] },
  { addresses: ["93.184.215.14", "::1"] }
]

describe("a name that led to a public address when its endpoint was made", () => {
  it.scopedLive.each(inside)(
    "is not connected to when it leads inside at an attempt: $addresses",
    function* ({ addresses }) {
      const zone: Record<string, ReadonlyArray<string>> = { "rebind.example": ["93.184.215.14"] }
      const { address } = yield* nameServer(zone)
      const resolver = DnsResolver.layerWith({ nameServers: [address] })
      const { hostname } = yield* parseDestination(url, { allowLocal: false })
      const accepted = yield* resolveDestination(hostname, publicAddressesOnly).pipe(Effect.provide(resolver))
      expect(accepted).toEqual([{ address: "93.184.215.14", family: 4 }])

      zone["rebind.example"] = addresses
      const consumer = yield* httpConsumer((_, response) => response.end("inside"))
      const attempts = Effect.forEach([url, `https://rebind.example:${consumer.port}/hook`], (one) =>
        Effect.forEach([false, true], (allowLocal) => post(one, { allowLocal }))
      )
      for (const outcome of (yield* Effect.provide(attempts, transport({}, resolver))).flat()) {
        expect(outcome).toMatchObject({ httpStatus: null, errorCode: "destination_blocked" })
      }
      expect(consumer.sockets).toHaveLength(0)
    }
  )
})
