import { BlockList, isIP } from "node:net"
import { Array as Arr, Config, ConfigError, Duration, Either, Redacted } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { isPrivateAddress } from "../bounds/PrivateNetworks.ts"

/** The forms of settings' values. An error of a form neither names the setting nor repeats a secret. */

export interface Form<A> {
  /** Reads the value; the setting adds its name. */
  readonly config: Config.Config<A>
  /** The bounds, for the table of settings; empty if there are none. */
  readonly bounds: string
  readonly isSecret: boolean
}

const form = <A>(config: Config.Config<A>, bounds = "", isSecret = false): Form<A> => ({ config, bounds, isSecret })

const anyRedacted = form(Config.redacted(), "", true)

/** A form that accepts what another does, unless `parse` refuses it with a message. */
export const parsed = <A, B>(
  { bounds, config, isSecret }: Form<A>,
  parse: (value: A) => Either.Either<B, string>
): Form<B> =>
  form(
    Config.mapOrFail(config, (value) =>
      Either.mapLeft(parse(value), (message) => ConfigError.InvalidData([], message))
    ),
    bounds,
    isSecret
  )

/** A form that accepts what another does, if it is valid. */
export const validated = <A>(of: Form<A>, message: string, isValid: (value: A) => boolean): Form<A> =>
  parsed(of, (value) => (isValid(value) ? Either.right(value) : Either.left(message)))

export const mapped = <A, B>(of: Form<A>, f: (value: A) => B): Form<B> => parsed(of, (value) => Either.right(f(value)))

const anyText = form(Config.string())

/** Text that is not empty, trimmed. */
export const text: Form<string> = validated(
  mapped(anyText, (value) => value.trim()),
  "must not be empty",
  (value) => value !== ""
)

export const secret = (message: string, isValid: (value: string) => boolean): Form<Redacted.Redacted> =>
  validated(anyRedacted, message, (value) => isValid(Redacted.value(value)))

/** Secrets that are each valid as text, comma-separated; at least one. */
export const secrets = (
  message: string,
  isValid: (value: string) => boolean
): Form<NonEmptyReadonlyArray<Redacted.Redacted>> =>
  parsed(anyRedacted, (value) => {
    const all = Redacted.value(value)
      .split(",")
      .map((one) => one.trim())
      .filter((one) => one !== "")
    if (!all.every(isValid)) return Either.left(message)
    const redacted = all.map((one) => Redacted.make(one))
    return Arr.isNonEmptyReadonlyArray(redacted) ? Either.right(redacted) : Either.left("must name at least one secret")
  })

export const anySecret: Form<Redacted.Redacted> = anyRedacted

export const flag: Form<boolean> = form(Config.boolean())

export const oneOf = <const Words extends ReadonlyArray<string>>(...words: Words): Form<Words[number]> =>
  form(Config.literal(...words)())

export const logLevel = form(Config.logLevel())

export const whole = ({ max, min }: { readonly min: number; readonly max: number }): Form<number> => ({
  ...validated(
    // Digits only: an empty text would be read as 0
    mapped(anyText, (value) => (/^\d{1,10}$/.test(value.trim()) ? Number(value) : Number.NaN)),
    `must be a whole number between ${min} and ${max}`,
    (value) => value >= min && value <= max
  ),
  bounds: `${min} to ${max}`
})

/** A TCP port; 0 picks any free one. */
export const port = whole({ min: 0, max: 65_535 })

/** A duration such as `10 seconds`, of at least `min`. */
export const duration = ({
  min
}: {
  readonly min?: `${number} ${string}` & Duration.DurationInput
} = {}): Form<Duration.Duration> => {
  const any = parsed(anyText, (value) =>
    Either.fromOption(
      Duration.decodeUnknown(value.trim()),
      () => 'must be a duration with its unit, such as "10 seconds"'
    )
  )
  if (min === undefined) return any
  return {
    ...validated(any, `must be at least ${Duration.format(min)}`, (value) => Duration.greaterThanOrEqualTo(value, min)),
    bounds: `at least \`${min}\``
  }
}

export const httpUrl: Form<URL> = parsed(text, (value) => {
  const url = URL.canParse(value) ? new URL(value) : undefined
  return url !== undefined && (url.protocol === "https:" || url.protocol === "http:")
    ? Either.right(url)
    : Either.left("must be an http or https URL")
})

export const origins: Form<ReadonlyArray<string>> = validated(
  mapped(text, (value) => value.split(",").map((origin) => origin.trim())),
  "must be a list of origins, e.g. https://app.example",
  (all) => all.every((origin) => URL.canParse(origin) && new URL(origin).origin === origin)
)

/** Addresses and networks, such as the proxies whose `X-Forwarded-For` is believed (setting `TRUSTED_PROXIES`). */
export type TrustedProxies = BlockList

const parseNetworks = (value: string): Either.Either<TrustedProxies, string> => {
  const list = new BlockList()
  for (const part of value.split(",").map((part) => part.trim())) {
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
export const networks: Form<TrustedProxies> = parsed(text, parseNetworks)

export const privateNetworks: Form<TrustedProxies> = validated(
  networks,
  "must be a list of private networks: within 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10 or fc00::/7",
  ({ rules }) =>
    // A rule reads `Subnet: IPv4 10.0.0.0/8` or `Address: IPv6 fd00::1`
    rules.every((rule) => isPrivateAddress(/ ([^ /]+)(?:\/\d+)?$/.exec(rule)?.[1] ?? ""))
)
