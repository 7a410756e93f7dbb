import { BlockList, isIP } from "node:net"

/**
 * The private networks in which an operator may allow destinations, for development; the addresses in them that are
 * still refused; and the names that nobody can register on the internet.
 */

const privateNetworks = new BlockList()
for (const [network, prefix] of [
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["172.16.0.0", 12],
  ["192.168.0.0", 16]
] as const) {
  privateNetworks.addSubnet(network, prefix, "ipv4")
}
privateNetworks.addSubnet("fc00::", 7, "ipv6")

/** Addresses at which clouds hand out credentials. */
const metadata = new BlockList()
metadata.addAddress("100.100.100.200", "ipv4")
metadata.addAddress("fd00:ec2::254", "ipv6")
metadata.addAddress("fd20:ce::254", "ipv6")

/**
 * Whether an address is in one of the private networks, except cloud metadata: never loopback, link-local, multicast or
 * a public address. An IPv4 address may be written as mapped into IPv6.
 */
export const isPrivateAddress = (address: string): boolean => {
  const family = isIP(address)
  if (family === 0 || address.includes("%")) return false
  const type = family === 6 ? "ipv6" : "ipv4"
  return privateNetworks.check(address, type) && !metadata.check(address, type)
}

const privateSuffixes = [".localhost", ".localdomain", ".local", ".internal", ".home.arpa"]

export const domainName = /^(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})+$/

const plainName = /^[a-z0-9_-]{1,63}$/

/** Whether a host is a name that nobody can register on the internet: `receiver`, `host.docker.internal`. */
export const isPrivateName = (hostname: string): boolean =>
  hostname !== "localhost" &&
  (plainName.test(hostname) ||
    (domainName.test(hostname) && privateSuffixes.some((suffix) => hostname.endsWith(suffix))))
