import { BlockList, isIP } from "node:net"
import { Config, ConfigError, Duration, Either } from "effect"
import { isPrivateAddress } from "../bounds/PrivateNetworks.ts"

/** The forms that settings come in: each refuses by the setting's name and never repeats a secret. */

/** Nothing where the setting is absent. */
export const optional = <A>(config: Config.Config<A>) => Config.option(config)

/** `Config.validate` with the setting's name in the error: its own has none. */
export const validated =
  <A>(name: string, message: string, isValid: (value: A) => boolean) =>
  (config: Config.Config<A>): Config.Config<A> =>
    Config.mapOrFail(config, (value) =>
      isValid(value) ? Either.right(value) : Either.left(ConfigError.InvalidData([name], message))
    )

/** Text, without the blanks around it. */
export const nonEmpty = (name: string) =>
  Config.string(name).pipe(
    Config.map((value) => value.trim()),
    validated(name, "must not be empty", (value) => value !== "")
  )

/** A whole number within bounds, both included. */
export const intBetween = (name: string, min: number, max: number, fallback: number) =>
  Config.string(name).pipe(
    // Digits alone: an empty text would be read as 0
    Config.map((text) => (/^\d{1,10}$/.test(text.trim()) ? Number(text) : Number.NaN)),
    validated(name, `must be a whole number between ${min} and ${max}`, (n) => n >= min && n <= max),
    Config.withDefault(fallback)
  )

/** A duration of at least `min`, such as `10 seconds`. */
export const durationAbove = (name: string, min: Duration.DurationInput, fallback: Duration.DurationInput) =>
  Config.duration(name).pipe(
    validated(name, `must be at least ${Duration.format(min)}`, (value: Duration.Duration) =>
      Duration.greaterThanOrEqualTo(value, min)
    ),
    Config.withDefault(Duration.decode(fallback))
  )

/** An absolute http or https URL. */
export const httpUrl = (name: string) =>
  nonEmpty(name).pipe(
    Config.mapOrFail((text) => {
      const url = URL.canParse(text) ? new URL(text) : undefined
      return url !== undefined && (url.protocol === "https:" || url.protocol === "http:")
        ? Either.right(url)
        : Either.left(ConfigError.InvalidData([name], "must be an http or https URL"))
    })
  )

/** Proxies whose `X-Forwarded-For` is believed (setting `TRUSTED_PROXIES`). */
export type TrustedProxies = BlockList

const parseTrustedProxies = (text: string): Either.Either<TrustedProxies, string> => {
  const list = new BlockList()
  for (const part of text.split(",").map((part) => part.trim())) {
    const [address = "", prefix, ...rest] = part.split("/")
    const family = isIP(address)
    const type = family === 6 ? "ipv6" : "ipv4"
    const bits = prefix === undefined ? undefined : /^\d{1,3}$/.test(prefix) ? Number(prefix) : Number.NaN
    if (family === 0 || rest.length > 0 || (bits !== undefined && !(bits <= (family === 6 ? 128 : 32)))) {
      return Either.left("must be a list of IP addresses or networks, comma-separated")
    }
    if (bits === undefined) {
      list.addAddress(address, type)
    } else {
      list.addSubnet(address, bits, type)
    }
  }
  return Either.right(list)
}

/** Addresses and networks (`10.0.0.0/8`), comma-separated. */
export const trustedProxies = (name: string): Config.Config<TrustedProxies> =>
  nonEmpty(name).pipe(
    Config.mapOrFail((text) =>
      Either.mapLeft(parseTrustedProxies(text), (message) => ConfigError.InvalidData([name], message))
    )
  )

/** Private networks, comma-separated. */
export const privateNetworks = (name: string): Config.Config<TrustedProxies> =>
  trustedProxies(name).pipe(
    validated(
      name,
      "must be a list of private networks: within 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10 or fc00::/7",
      ({ rules }) =>
        // A rule reads `Subnet: IPv4 10.0.0.0/8` or `Address: IPv6 fd00::1`
        rules.every((rule) => isPrivateAddress(/ ([^ /]+)(?:\/\d+)?$/.exec(rule)?.[1] ?? ""))
    )
  )

/** What is wrong, a line for each setting, by its name. */
export const describe = (error: ConfigError.ConfigError): ReadonlyArray<string> => {
  switch (error._op) {
    case "And":
    case "Or":
      return [...describe(error.left), ...describe(error.right)]
    default:
      // Names are flat; where an error names a path of several parts, they repeat one name
      return [`${error.path.at(-1) ?? ""}: ${error.message}`]
  }
}
