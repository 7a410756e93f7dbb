import { BlockList } from "node:net"
import { describe, expect, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import {
  isAddressAllowed,
  isLoopbackAddress,
  isPublicAddress,
  loopbackToo,
  publicAddressesOnly
} from "../../src/engine/transport/DestinationUrl.ts"

const publicAddresses = [
  "1.1.1.1",
  "8.8.8.8",
  "9.255.255.255",
  "11.0.0.0",
  "100.63.255.255",
  "100.128.0.0",
  "126.255.255.255",
  "128.0.0.1",
  "168.63.129.15",
  "168.63.129.17",
  "169.253.255.255",
  "169.255.0.1",
  "172.15.255.255",
  "172.32.0.1",
  "192.0.1.1",
  "192.167.255.255",
  "192.169.0.1",
  "198.17.255.255",
  "198.20.0.1",
  "203.0.112.255",
  "203.0.114.1",
  "223.255.255.255",
  "2001:200::1",
  "2001:4860:4860::8888",
  "2001:4860:4860:0:0:0:0:8888",
  "2606:4700:4700::1111",
  "2620:fe::fe",
  "2a00:1450:4001:81b::200e"
]

const refusedAddresses: ReadonlyArray<readonly [what: string, address: string]> = [
  ["this network", "0.0.0.0"],
  ["this network", "0.1.2.3"],
  ["private", "10.0.0.1"],
  ["private", "10.255.255.255"],
  ["private", "172.16.0.1"],
  ["private", "172.31.255.255"],
  ["private", "192.168.0.1"],
  ["private", "192.168.255.255"],
  ["carrier-grade NAT", "100.64.0.1"],
  ["carrier-grade NAT", "100.127.255.255"],
  ["loopback", "127.0.0.1"],
  ["loopback", "127.255.255.255"],
  ["link-local", "169.254.0.1"],
  ["protocol assignments", "192.0.0.8"],
  ["documentation", "192.0.2.1"],
  ["documentation", "198.51.100.7"],
  ["documentation", "203.0.113.255"],
  ["6to4 relay", "192.88.99.1"],
  ["benchmarking", "198.18.0.1"],
  ["benchmarking", "198.19.255.255"],
  ["multicast", "224.0.0.1"],
  ["multicast", "239.255.255.255"],
  ["reserved", "240.0.0.1"],
  ["broadcast", "255.255.255.255"],
  ["cloud metadata", "169.254.169.254"],
  ["cloud metadata", "169.254.170.2"],
  ["cloud metadata", "100.100.100.200"],
  ["cloud metadata", "192.0.0.192"],
  ["cloud metadata", "168.63.129.16"],
  ["cloud metadata", "fd00:ec2::254"],
  ["cloud metadata", "fd20:ce::254"],
  ["unspecified", "::"],
  ["loopback", "::1"],
  ["loopback", "0:0:0:0:0:0:0:1"],
  ["loopback with a zone", "::1%lo"],
  ["IPv4-mapped loopback", "::ffff:127.0.0.1"],
  ["IPv4-mapped loopback", "::ffff:7f00:1"],
  ["IPv4-mapped private", "::ffff:10.0.0.1"],
  ["IPv4-mapped metadata", "::ffff:a9fe:a9fe"],
  ["IPv4-compatible loopback", "::127.0.0.1"],
  ["IPv4-compatible private", "::a00:1"],
  ["IPv4-translated", "::ffff:0:7f00:1"],
  ["NAT64 of loopback", "64:ff9b::7f00:1"],
  ["NAT64 of metadata", "64:ff9b::169.254.169.254"],
  ["local-use NAT64", "64:ff9b:1::a00:1"],
  ["6to4 of loopback", "2002:7f00:1::"],
  ["6to4 of private", "2002:a00:1::1"],
  ["Teredo", "2001:0:4136:e378:8000:63bf:3fff:fdd2"],
  ["IPv6 benchmarking", "2001:2::1"],
  ["ORCHID", "2001:20::1"],
  ["documentation", "2001:db8::1"],
  ["documentation", "3fff::1"],
  ["discard-only", "100::1"],
  ["segment routing", "5f00::1"],
  ["unique local", "fc00::1"],
  ["unique local", "fdff:ffff::1"],
  ["link-local", "fe80::1"],
  ["link-local with a zone", "fe80::1%eth0"],
  ["a public address with a zone", "2606:4700:4700::1111%1"],
  ["site-local", "fec0::1"],
  ["multicast", "ff02::1"],
  ["unassigned", "4000::1"],
  ["unassigned", "8000::1"]
]

const notAddresses = [
  "",
  " ",
  "localhost",
  "example.com",
  "2130706433",
  "134744072",
  "0x8.0x8.0x8.0x8",
  "8.8",
  "8.8.8",
  "08.8.8.8",
  "8.8.8.8 ",
  "8.8.8.8:443",
  "8.8.8.8/32",
  "8.8.8.8.8",
  "256.8.8.8",
  "[2606:4700:4700::1111]",
  "2606:4700:4700:::1111",
  "8.8.8.8\u0000"
]

describe("a public address", () => {
  it.each(publicAddresses)("is what anybody can reach: %s", (address) => {
    expect(isPublicAddress(address)).toBe(true)
    expect(isAddressAllowed(address, publicAddressesOnly)).toBe(true)
    expect(isAddressAllowed(address, loopbackToo)).toBe(true)
  })

  it.each(refusedAddresses)("is none in the range %s: %s", (_, address) => {
    expect(isPublicAddress(address)).toBe(false)
    expect(isAddressAllowed(address, publicAddressesOnly)).toBe(false)
  })

  it.each(notAddresses)("is none that is not a plain address: %j", (text) => {
    expect(isPublicAddress(text)).toBe(false)
    expect(isAddressAllowed(text, loopbackToo)).toBe(false)
  })

  it("is never one that lies inside an IPv4-mapped, IPv4-compatible, NAT64 or 6to4 address", () => {
    fc.assert(
      fc.property(fc.ipV4(), fc.constantFrom("::ffff:", "::", "64:ff9b::", "64:ff9b:1::"), (address, prefix) => {
        expect(isPublicAddress(`${prefix}${address}`)).toBe(false)
      })
    )
  })

  it("answers for any text without throwing", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.ipV4(), fc.ipV6(), fc.domain()), (text) => {
        expect(isPublicAddress(text)).toBeTypeOf("boolean")
      })
    )
  })
})

describe("local development", () => {
  it.each(["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "::ffff:7f00:1"])("adds loopback: %s", (address) => {
    expect(isLoopbackAddress(address)).toBe(true)
    expect(isAddressAllowed(address, loopbackToo)).toBe(true)
  })

  it("adds nothing but loopback", () => {
    const allowed = refusedAddresses.filter(([, address]) => isAddressAllowed(address, loopbackToo))
    expect(allowed.map(([, address]) => address)).toEqual([
      "127.0.0.1",
      "127.255.255.255",
      "::1",
      "0:0:0:0:0:0:0:1",
      "::ffff:127.0.0.1",
      "::ffff:7f00:1"
    ])
  })
})

const networksOf = (...networks: ReadonlyArray<readonly [network: string, prefix: number]>) => {
  const list = new BlockList()
  for (const [network, prefix] of networks) list.addSubnet(network, prefix, network.includes(":") ? "ipv6" : "ipv4")
  return { allowLoopback: false, networks: list }
}

describe("private networks that are opened for development", () => {
  const opened = networksOf(["172.16.0.0", 12], ["fd12::", 16])

  it.each(["172.16.0.1", "172.31.255.254", "::ffff:172.20.0.2", "fd12::9"])("are reached: %s", (address) => {
    expect(isAddressAllowed(address, opened)).toBe(true)
    expect(isAddressAllowed(address, publicAddressesOnly)).toBe(false)
    expect(isAddressAllowed(address, loopbackToo)).toBe(false)
  })

  it.each(["172.32.0.1", "10.0.0.1", "192.168.0.1", "fd13::1", "8.8.8.8", "127.0.0.1", "::1", "169.254.169.254"])(
    "open nothing beside them: %s",
    (address) => {
      expect(isAddressAllowed(address, opened)).toBe(false)
    }
  )

  it.each([
    "169.254.169.254",
    "::ffff:169.254.169.254",
    "100.100.100.200",
    "::ffff:100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fe80::1",
    "fd00::1%eth0",
    "127.0.0.1",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
    "8.8.8.8",
    "receiver"
  ])("never open cloud metadata or what is not private, however wide they are: %s", (address) => {
    expect(isAddressAllowed(address, networksOf(["0.0.0.0", 0], ["::", 0]))).toBe(false)
  })
})
