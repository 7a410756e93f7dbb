/**
 * Which IP addresses the service may send events to (contract 5.2).
 *
 * A customer chooses a destination, and the operator's network connects to it, so an address that only that network can
 * reach must never be connected to (server-side request forgery). For IPv4 there is a list of refused ranges; for IPv6
 * one of allowed ranges, because its special ranges, and the forms that contain an IPv4 address, keep growing.
 */
import { BlockList, isIP } from "node:net"
import { isPrivateAddress } from "../../platform/bounds/PrivateNetworks.ts"

/** The addresses that are allowed besides public ones. */
export interface AddressPolicy {
  /** True only for a local destination if the setting for local development allows those; never in production. */
  readonly allowLoopback: boolean
  /** Private networks that the operator allows for development; never in production. */
  readonly networks?: BlockList
}

/** The policy of every destination that strangers can choose: only public addresses. */
export const publicAddressesOnly: AddressPolicy = { allowLoopback: false }

/** The policy of a local destination in development: public addresses and loopback. */
export const loopbackToo: AddressPolicy = { allowLoopback: true }

const subnets = (
  family: "ipv4" | "ipv6",
  all: ReadonlyArray<readonly [network: string, prefix: number]>
): BlockList => {
  const list = new BlockList()
  for (const [network, prefix] of all) list.addSubnet(network, prefix, family)
  return list
}

const refusedIpv4 = subnets("ipv4", [
  ["0.0.0.0", 8], // "this network"
  ["10.0.0.0", 8], // private
  ["100.64.0.0", 10], // carrier-grade NAT; one cloud's metadata at 100.100.100.200
  ["127.0.0.0", 8], // loopback
  ["168.63.129.16", 32], // a cloud's host agent, on an address that looks public
  ["169.254.0.0", 16], // link-local, most clouds' metadata
  ["172.16.0.0", 12], // private
  ["192.0.0.0", 24], // protocol assignments; one cloud's metadata at 192.0.0.192
  ["192.0.2.0", 24], // documentation
  ["192.31.196.0", 24], // AS112 sink
  ["192.52.193.0", 24], // automatic multicast tunnelling
  ["192.88.99.0", 24], // 6to4 relays
  ["192.168.0.0", 16], // private
  ["192.175.48.0", 24], // AS112 sink
  ["198.18.0.0", 15], // benchmarking
  ["198.51.100.0", 24], // documentation
  ["203.0.113.0", 24], // documentation
  ["224.0.0.0", 4], // multicast
  ["240.0.0.0", 4] // reserved, and the broadcast address
])

const globalUnicastIpv6 = subnets("ipv6", [["2000::", 3]])

const refusedIpv6 = subnets("ipv6", [
  ["2001::", 23], // protocol assignments: Teredo, benchmarking, ORCHID and others
  ["2001:db8::", 32], // documentation
  ["2002::", 16], // 6to4: carries an IPv4 address
  ["2620:4f:8000::", 48], // AS112 sink
  ["3ffe::", 16], // the former test network, returned
  ["3fff::", 20] // documentation
])

const loopback = subnets("ipv4", [["127.0.0.0", 8]])
loopback.addAddress("::1", "ipv6")

/**
 * Whether the address is reachable from anywhere on the internet. `address` is an address in its usual text form;
 * anything else (a name, an address with a zone id, a shortened or numeric IPv4 form) is not public.
 */
export const isPublicAddress = (address: string): boolean => {
  if (address.includes("%")) return false
  switch (isIP(address)) {
    case 4:
      return !refusedIpv4.check(address, "ipv4")
    case 6:
      return globalUnicastIpv6.check(address, "ipv6") && !refusedIpv6.check(address, "ipv6")
    default:
      return false
  }
}

/** Whether the address is loopback: 127.0.0.0/8, `::1`, or the former written as an IPv4-mapped IPv6 address. */
export const isLoopbackAddress = (address: string): boolean => {
  if (address.includes("%")) return false
  const family = isIP(address)
  return family !== 0 && loopback.check(address, family === 6 ? "ipv6" : "ipv4")
}

/** Whether the address is in one of these networks and private: cloud metadata, loopback and the like never are. */
export const isInNetworks = (address: string, networks: BlockList): boolean =>
  isPrivateAddress(address) && networks.check(address, isIP(address) === 6 ? "ipv6" : "ipv4")

export const isAddressAllowed = (address: string, policy: AddressPolicy): boolean =>
  policy.networks !== undefined
    ? isInNetworks(address, policy.networks)
    : isPublicAddress(address) || (policy.allowLoopback && isLoopbackAddress(address))
