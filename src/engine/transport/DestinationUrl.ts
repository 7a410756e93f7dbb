import { promises as dns } from "node:dns"
import { BlockList, isIP } from "node:net"
import { Context, Data, Duration, Effect, Either, Fiber, Layer } from "effect"
import { domainName, isPrivateAddress, isPrivateName } from "../../platform/bounds/PrivateNetworks.ts"
import type { Environment } from "../../platform/kit/Environment.ts"
import { bareHostname } from "../../platform/kit/UrlServer.ts"

/**
 * Rules for a destination's URL, and the resolution of its host name (contract 5.2).
 *
 * The WHATWG URL parser normalises the text before it is checked, so that the many spellings of one host (decimal,
 * octal, percent-encoded, full-width) are one host here and in the connection that follows.
 */

/** The longest URL accepted, in characters, as given and as normalised. */
export const maxDestinationUrlLength = 2048

/** The rule that a destination breaks. */
export type DestinationRefusalReason =
  | "malformed"
  | "too_long"
  | "scheme"
  | "port"
  | "credentials"
  | "query"
  | "fragment"
  | "host"
  | "address"

/**
 * A destination that the service refuses to send to. `message` is for the integrator: it names the rule and never
 * repeats the URL, which may hold a password (contract 5.2).
 */
export class DestinationRefusal extends Data.TaggedError("DestinationRefusal")<{
  readonly reason: DestinationRefusalReason
  readonly message: string
}> {}

/** The destination's host name resolves to no address (contract 5.2). */
export class DestinationUnresolvable extends Data.TaggedError("DestinationUnresolvable")<{
  readonly hostname: string
  /** The resolver's error, or `null` if it answered without an address. */
  readonly cause: unknown
}> {
  override get message(): string {
    return `The host name ${this.hostname} could not be resolved to an address.`
  }
}

/** The destinations that are allowed besides public ones. */
export interface DestinationOptions {
  /** Whether `localhost` and loopback addresses are allowed, with http or https and on any port (local development). */
  readonly allowLocal: boolean
  /** Private networks whose hosts are allowed as well, with http or https and on any port (local development). */
  readonly networks?: BlockList
}

const messages: Record<DestinationRefusalReason, string> = {
  malformed:
    "The destination URL is not a valid absolute URL without spaces and backslashes, such as https://shop.example/events.",
  too_long: `The destination URL is longer than ${maxDestinationUrlLength} characters.`,
  scheme: "The destination URL must start with https://.",
  port: "The destination URL must use port 443, the default of https: leave the port out.",
  credentials: "The destination URL must not contain a user name or a password.",
  query: "The destination URL must not contain a query string: put what identifies the receiver in the path.",
  fragment: "The destination URL must not contain a fragment.",
  host: "The destination URL must have a public domain name as its host, such as shop.example.",
  address:
    "The destination URL resolves to an address that is not public: private, loopback, link-local and reserved addresses are refused."
}

const refusal = (reason: DestinationRefusalReason): DestinationRefusal =>
  new DestinationRefusal({ reason, message: messages[reason] })

/** Whether a host is this machine: `localhost`, or a loopback address. */
export const isLocalHost = (hostname: string): boolean =>
  hostname === "localhost" || isLoopbackAddress(bareHostname(hostname))

/** The networks that a host may be in: those of the options, if it is one of their addresses or a private name. */
const networksFor = (hostname: string, { networks }: DestinationOptions): BlockList | undefined => {
  if (networks === undefined || networks.rules.length === 0) return undefined
  return isPrivateName(hostname) || isInNetworks(bareHostname(hostname), networks) ? networks : undefined
}

/**
 * The policy for the addresses that a host may resolve to. Only local hosts may resolve to loopback, and only private
 * names and addresses to private networks: a public name that does is refused, even in development.
 */
export const addressPolicyFor = (hostname: string, options: DestinationOptions): AddressPolicy => {
  if (options.allowLocal && isLocalHost(hostname)) return loopbackToo
  const networks = networksFor(hostname, options)
  return networks === undefined ? publicAddressesOnly : { allowLoopback: false, networks }
}

const refuseHost = (hostname: string): DestinationRefusalReason | null => {
  const bare = bareHostname(hostname)
  if (isIP(bare) !== 0) return isPublicAddress(bare) ? null : "address"
  return !domainName.test(hostname) || isPrivateName(hostname) ? "host" : null
}

const refuseUrl = (url: URL, options: DestinationOptions): DestinationRefusalReason | null => {
  const local = (options.allowLocal && isLocalHost(url.hostname)) || networksFor(url.hostname, options) !== undefined
  if (url.protocol !== "https:" && !(local && url.protocol === "http:")) return "scheme"
  if (url.username !== "" || url.password !== "") return "credentials"
  // An empty query or fragment shows in `href` but not in `search` and `hash`
  if (url.href.includes("#")) return "fragment"
  if (url.href.includes("?")) return "query"
  if (local) return url.port === "0" ? "port" : null
  return refuseHost(url.hostname) ?? (url.port === "" ? null : "port")
}

// Characters that the URL parser would silently drop or change: spaces, control characters, backslashes
const rewrittenSilently = /[\s\\\p{Cc}]/u

const emptyCredentials = /^[a-z]+:\/*[^/?#]*@/i

/**
 * Checks the URL of a destination and returns it parsed; its `href` is stored, shown and sent to (contract 5.2). `text` is
 * the integrator's input, or the stored form. The host name is not resolved: see `resolveDestination`.
 */
export const parseDestination = (text: string, options: DestinationOptions): Either.Either<URL, DestinationRefusal> => {
  if (text.length > maxDestinationUrlLength) return Either.left(refusal("too_long"))
  if (rewrittenSilently.test(text) || !URL.canParse(text)) return Either.left(refusal("malformed"))
  if (emptyCredentials.test(text)) return Either.left(refusal("credentials"))
  const url = new URL(text)
  if (url.href.length > maxDestinationUrlLength) return Either.left(refusal("too_long"))
  const reason = refuseUrl(url, options)
  return reason === null ? Either.right(url) : Either.left(refusal(reason))
}

/** One address that a name resolves to. */
export interface ResolvedAddress {
  readonly address: string
  readonly family: 4 | 6
}

/** Options of name resolution. */
export interface DnsResolverOptions {
  /** Name servers to ask, each an address with an optional port (`1.1.1.1:53`), instead of the system's. */
  readonly nameServers?: ReadonlyArray<string>
  /** How long a name may take to resolve. Default 5 seconds. */
  readonly timeout?: Duration.DurationInput
}

/** Resolves names; tests replace it. */
export class DnsResolver extends Context.Tag("connected-payments/engine/DnsResolver")<
  DnsResolver,
  {
    /** All addresses of the name, IPv4 and IPv6, in bounded time. */
    readonly resolve: (hostname: string) => Effect.Effect<ReadonlyArray<ResolvedAddress>, DestinationUnresolvable>
  }
>() {
  /**
   * A resolver that asks name servers.
   *
   * It uses the resolver built into Node, not the system's `getaddrinfo`, which blocks one of the process's four worker
   * threads while a name server is silent, so that a few dead names would delay everybody's deliveries; it also tries
   * the cluster's own search domains first. The system resolves only `localhost`, which is not a DNS name, and private
   * names, which may be in the hosts file and are allowed in development only.
   */
  static readonly layerWith = (options: DnsResolverOptions): Layer.Layer<DnsResolver> =>
    Layer.succeed(this, {
      resolve: (hostname) =>
        (hostname === "localhost" || isPrivateName(hostname)
          ? lookUp(hostname)
          : query(hostname, options.nameServers)
        ).pipe(
          Effect.timeoutFail({
            duration: options.timeout ?? Duration.seconds(5),
            onTimeout: () => new DestinationUnresolvable({ hostname, cause: "timed out" })
          })
        )
    })

  /** A resolver that asks the system's name servers, for at most 5 seconds. */
  static readonly layer: Layer.Layer<DnsResolver> = this.layerWith({})
}

const lookUp = (hostname: string): Effect.Effect<ReadonlyArray<ResolvedAddress>, DestinationUnresolvable> =>
  Effect.tryPromise({
    try: () => dns.lookup(hostname, { all: true, verbatim: true }),
    catch: (cause) => new DestinationUnresolvable({ hostname, cause })
  }).pipe(
    Effect.map((answers) => answers.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }) as const))
  )

/** How long to wait for the second family once the first has returned an address. */
const otherFamilyWithin = Duration.seconds(1)

/** Asks for both address families at once; one is enough. */
const query = (
  hostname: string,
  nameServers: ReadonlyArray<string> | undefined
): Effect.Effect<ReadonlyArray<ResolvedAddress>, DestinationUnresolvable> =>
  Effect.suspend(() => {
    // A separate resolver, since `cancel` ends all queries of a resolver
    const resolver = new dns.Resolver({ timeout: 2000, tries: 2 })
    if (nameServers !== undefined) resolver.setServers(nameServers)
    return Effect.gen(function* () {
      const v6 = yield* Effect.fork(Effect.either(ask(hostname, 6, () => resolver.resolve6(hostname))))
      const v4 = yield* Effect.fork(Effect.either(ask(hostname, 4, () => resolver.resolve4(hostname))))
      const first = yield* Effect.raceFirst(Fiber.join(v6), Fiber.join(v4))
      // A server may not answer for one family: the other's addresses, all of them checked, are enough
      const within = Either.isRight(first) && first.right.length > 0 ? otherFamilyWithin : Duration.infinity
      const answer = (fiber: typeof v4) =>
        Effect.timeoutTo(Fiber.join(fiber), {
          duration: within,
          onSuccess: (either) => either,
          onTimeout: () => Either.left(new DestinationUnresolvable({ hostname, cause: "timed out" }))
        })
      const answers = yield* Effect.all([answer(v6), answer(v4)], { concurrency: 2 })
      const addresses = answers.flatMap(Either.getOrElse((): ReadonlyArray<ResolvedAddress> => []))
      const [, last] = answers
      return answers.every(Either.isLeft) && Either.isLeft(last) ? yield* last.left : addresses
    }).pipe(Effect.ensuring(Effect.sync(() => resolver.cancel())))
  })

const ask = (
  hostname: string,
  family: 4 | 6,
  send: () => Promise<ReadonlyArray<string>>
): Effect.Effect<ReadonlyArray<ResolvedAddress>, DestinationUnresolvable> =>
  Effect.tryPromise({ try: send, catch: (cause) => new DestinationUnresolvable({ hostname, cause }) }).pipe(
    Effect.map((addresses) => addresses.map((address) => ({ address, family })))
  )

/**
 * The addresses of a host, at least one. A single address that the policy does not allow refuses the whole name, since
 * the name's owner decides which answer comes first. A literal address is checked without a look-up. `hostname` is a
 * URL's (IPv6 with or without brackets).
 */
export const resolveDestination: (
  hostname: string,
  policy: AddressPolicy
) => Effect.Effect<ReadonlyArray<ResolvedAddress>, DestinationUnresolvable | DestinationRefusal, DnsResolver> =
  Effect.fnUntraced(function* (hostname: string, policy: AddressPolicy) {
    const bare = bareHostname(hostname)
    const family = isIP(bare)
    const addresses =
      family === 0
        ? yield* (yield* DnsResolver).resolve(hostname)
        : [{ address: bare, family: family === 6 ? (6 as const) : (4 as const) }]
    if (addresses.length === 0) return yield* new DestinationUnresolvable({ hostname, cause: null })
    if (!addresses.every(({ address }) => isAddressAllowed(address, policy))) return yield* refusal("address")
    return addresses
  })

/** The destinations that the operator allows besides public ones. */
export interface DestinationSettings {
  /** Loopback and plain HTTP destinations, in the sandbox only. */
  readonly allowLocalDestinations: boolean
  /** Private networks that destinations may be in, in the sandbox only. Default: none. */
  readonly destinationNetworks?: BlockList
}

/** The rules for a tenant's destinations: local ones only if the operator allows them, and never in production. */
export const destinationRules = (
  { allowLocalDestinations, destinationNetworks }: DestinationSettings,
  { environment }: { readonly environment: Environment }
): DestinationOptions =>
  environment === "sandbox"
    ? {
        allowLocal: allowLocalDestinations,
        ...(destinationNetworks === undefined ? {} : { networks: destinationNetworks })
      }
    : { allowLocal: false }

/**
 * Which IP addresses the service may send events to (contract 5.2).
 *
 * A customer chooses a destination, and the operator's network connects to it, so an address that only that network can
 * reach must never be connected to (server-side request forgery). For IPv4 there is a list of refused ranges; for IPv6
 * one of allowed ranges, because its special ranges, and the forms that contain an IPv4 address, keep growing.
 */

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
