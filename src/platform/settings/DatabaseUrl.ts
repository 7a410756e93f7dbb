import { Either } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { isPrivateAddress, isPrivateName } from "../bounds/PrivateNetworks.ts"

/** A server that a URL names. `name` is a host name, an address, or the directory of a Unix socket. */
export interface Host {
  readonly name: string
  readonly port: number
}

/**
 * Which servers are accepted: `primary` those that are not a standby, `read-write` primaries whose sessions may write
 * (a managed database with a full disk refuses that), `standby` replicas, `any` all.
 */
export type SessionKind = "any" | "read-write" | "primary" | "standby"

export interface DatabaseTarget {
  /** The URL with at most one host, as `pg` reads it. */
  readonly url: string
  /** Two or more hosts; none if the URL names one, which `pg` resolves. */
  readonly hosts: ReadonlyArray<Host>
  readonly kind: SessionKind
  readonly saysKind: boolean
}

/** The rule for a schema's name, which is part of the names of notification channels: these have 63 bytes. */
export const schemaNames =
  "must be 1 to 40 lowercase letters, digits and underscores, the first no digit, and not `public` or one that PostgreSQL keeps for itself (`pg_…`, `information_schema`)"

export const isSchemaName = (name: string): boolean =>
  /^(?!pg_|public$|information_schema$)[a-z_][a-z0-9_]{0,39}$/.test(name)

export type Purpose = "write" | "read"

/** The values of `target_session_attrs`, as libpq has them, that make sense for a purpose; the first is the default. */
const kinds: Readonly<Record<Purpose, ReadonlyMap<string, SessionKind>>> = {
  write: new Map([
    ["read-write", "read-write"],
    ["primary", "primary"],
    ["any", "any"]
  ]),
  read: new Map([
    ["standby", "standby"],
    ["prefer-standby", "standby"],
    ["read-only", "standby"],
    ["any", "any"]
  ])
}

/**
 * The settings that the service makes on its connections, by pg's names. `pg` would prefer those of the URL: a
 * `query_timeout` there would also delay the detection of a silent server.
 */
const ownSettings: ReadonlySet<string> = new Set([
  "connectionTimeoutMillis",
  "idle_in_transaction_session_timeout",
  "keepAlive",
  "query_timeout",
  "statement_timeout"
])

const defaultPort = 5432

/** Scheme, user and password, hosts, and the rest. */
const parts = /^(postgres(?:ql)?:\/\/)((?:[^/?#]*@)?)([^/?#]*)(.*)$/s

const hostAndPort = /^(\[[0-9a-f:.]+\]|[^:[\],@\s]+)(?::(\d{1,5}))?$/i

const isPort = (port: number): boolean => Number.isInteger(port) && port > 0 && port < 65_536

const hostFrom = (text: string): Host | undefined => {
  const [, name, port] = hostAndPort.exec(text) ?? []
  const host = { name: name?.replace(/^\[|\]$/g, "") ?? "", port: port === undefined ? defaultPort : Number(port) }
  return name !== undefined && isPort(host.port) ? host : undefined
}

/** From the parameters `host` and `port`: as many ports as hosts, one for all, or none. */
const hostsFrom = (names: string, ports: string): ReadonlyArray<Host | undefined> => {
  const numbers =
    ports === "" ? [defaultPort] : ports.split(",").map((port) => Number(port === "" ? defaultPort : port))
  const hosts = names.split(",")
  return hosts.map((name, index) => {
    const port = numbers.length === 1 ? numbers[0] : numbers[index]
    const isWhole = numbers.length === 1 || numbers.length === hosts.length
    return name !== "" && port !== undefined && isPort(port) && isWhole ? { name, port } : undefined
  })
}

const areHosts = (hosts: ReadonlyArray<Host | undefined>): hosts is NonEmptyReadonlyArray<Host> =>
  hosts.length > 0 && hosts.every((host) => host !== undefined)

const splitUrl = (text: string) => {
  const [, scheme, user = "", authority = "", rest = ""] = parts.exec(text) ?? []
  const query = rest.indexOf("?")
  const parameters = new URLSearchParams(query === -1 ? "" : rest.slice(query + 1).replace(/#.*$/s, ""))
  const names = parameters.get("host") ?? ""
  const listed = names === "" ? authority.split(",").map(hostFrom) : hostsFrom(names, parameters.get("port") ?? "")
  return { listed, parameters, query, rest, scheme, user }
}

/** The values of `sslmode`, and of `ssl`, with which every connection is encrypted. */
const encrypts = /^(require|verify-ca|verify-full|no-verify|true|1)$/

/** Whether the way to a server leads through nobody else's network: this machine, a private address or name. */
const isNear = (name: string): boolean =>
  /^(\/|%2f|localhost$|127\.|::1$)/i.test(name) || isPrivateAddress(name) || isPrivateName(name.toLowerCase())

/** Whether connections by a URL may be unencrypted, to a server that is neither this machine nor in a private network. */
export const isPlainToOthers = (text: string): boolean => {
  const { listed, parameters } = splitUrl(text)
  return (
    !encrypts.test(parameters.get("sslmode") ?? parameters.get("ssl") ?? "") &&
    listed.some((host) => host !== undefined && !isNear(host.name))
  )
}

/**
 * Reads a URL that may name several hosts, as libpq does: `postgresql://user:password@h1:5432,h2:5432/database`, or as
 * `?host=h1,h2&port=5432,5432`; `target_session_attrs` says which servers are accepted. The left side is an error
 * message that repeats no value of the URL.
 */
export const readDatabaseUrl = (text: string, purpose: Purpose): Either.Either<DatabaseTarget, string> => {
  const { listed, parameters, query, rest, scheme, user } = splitUrl(text)
  if (scheme === undefined) return Either.left("must be a postgresql:// URL")
  const own = [...parameters.keys()].find((name) => ownSettings.has(name))
  if (own !== undefined) return Either.left(`must not have ${own}: the service sets it on its connections itself`)
  const written = parameters.get("target_session_attrs")
  const [usual = "any"] = kinds[purpose].values()
  const kind = written === null ? usual : kinds[purpose].get(written)
  if (kind === undefined) {
    return Either.left(`must have a target_session_attrs of ${[...kinds[purpose].keys()].join(", ")}, or none`)
  }
  if (listed.length < 2) {
    return URL.canParse(text)
      ? Either.right({ url: text, hosts: [], kind, saysKind: written !== null })
      : Either.left("must be a postgresql:// URL")
  }
  if (!areHosts(listed)) return Either.left("must name its hosts as host:port,host:port")
  const [first] = listed
  const path = query === -1 ? rest : rest.slice(0, query)
  // As parameters, which `pg` prefers: the directory of a Unix socket can't precede the path
  parameters.set("host", first.name)
  parameters.set("port", String(first.port))
  return Either.right({
    url: `${scheme}${user}localhost${path}?${parameters}`,
    hosts: listed,
    kind,
    saysKind: written !== null
  })
}

/** The hosts of a URL, for messages: never text that could be part of a password with an unescaped character. */
export const hostsOf = (text: string): string => {
  // Then the apparent hosts may be the user name and the beginning of the password
  if (parts.exec(text)?.[4]?.includes("@") === true) return "its host"
  const target = readDatabaseUrl(text, "write").pipe(Either.orElse(() => readDatabaseUrl(text, "read")))
  if (Either.isRight(target) && target.right.hosts.length > 0) {
    return target.right.hosts.map(({ name, port }) => `${name}:${port}`).join(", ")
  }
  if (!URL.canParse(text)) return "its host"
  const { host, searchParams } = new URL(text)
  return searchParams.get("host") ?? (host === "" ? "localhost" : host)
}
