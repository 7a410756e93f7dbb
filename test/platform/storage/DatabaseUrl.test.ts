import { Either, FastCheck, Redacted } from "effect"
import pg from "pg"
import { hostsOf, readDatabaseUrl } from "../../../src/platform/settings/DatabaseUrl.ts"
import { openedOnDemand } from "../../../src/platform/storage/Database.ts"
import { describe, expect, it } from "../../harness/Tests.ts"

const read = (url: string) => Either.getOrThrowWith(readDatabaseUrl(url, "write"), (message) => new Error(message))

describe("a URL of a database", () => {
  it.each([
    ["postgresql://u:p@h1:5433,h2/payments", ["h1:5433", "h2:5432"], "payments"],
    ["postgres://u:p@[::1]:5433,h2:1/payments?sslmode=disable", ["::1:5433", "h2:1"], "payments"],
    ["postgres://u@h1,h2,h3/db?target_session_attrs=read-write", ["h1:5432", "h2:5432", "h3:5432"], "db"],
    ["postgres://u:p@/db?host=h1,h2&port=1,2", ["h1:1", "h2:2"], "db"],
    ["postgres://u:p@/db?host=/run/a,/run/b&port=7", ["/run/a:7", "/run/b:7"], "db"],
    ["postgres://u:p%40%2F@h1,h2/db", ["h1:5432", "h2:5432"], "db"]
  ])("%s names several hosts, and pg reads the first from what remains", (url, hosts, database) => {
    const target = read(url)
    expect(target.hosts.map(({ name, port }) => `${name}:${port}`)).toEqual(hosts)
    const client = new pg.Client({ connectionString: target.url })
    expect([`${client.host}:${client.port}`, client.database, client.user]).toEqual([hosts[0], database, "u"])
    expect(hostsOf(url)).toBe(hosts.join(", "))
  })

  it("keeps the password of a URL with several hosts", () => {
    const { url } = read("postgres://u:p%40%2F%3A%20s@h1,h2/db?application_name=a%20b")
    expect(new pg.Client({ connectionString: url }).password).toBe("p@/: s")
  })

  it.each([
    "postgres://u:p@host/db",
    "postgres:///payments?host=/run",
    "postgresql://u:p@host:5433/db?sslmode=require"
  ])("%s with one host is left as it is", (url) => {
    expect(read(url)).toEqual({ url, hosts: [], kind: "read-write", saysKind: false })
  })

  it.each([
    ["write", undefined, "read-write"],
    ["write", "read-write", "read-write"],
    ["write", "primary", "primary"],
    ["write", "any", "any"],
    ["write", "standby", undefined],
    ["write", "", undefined],
    ["read", undefined, "standby"],
    ["read", "prefer-standby", "standby"],
    ["read", "any", "any"],
    ["read", "read-write", undefined]
  ] as const)("to %s with target_session_attrs=%s accepts %s", (purpose, attributes, kind) => {
    const url = `postgres://h1,h2/db${attributes === undefined ? "" : `?target_session_attrs=${attributes}`}`
    const target = readDatabaseUrl(url, purpose)
    expect(Either.isRight(target) ? target.right.kind : undefined).toBe(kind)
  })

  it.scopedLive("says nothing of what the service sets on its connections itself, but for their name", function* () {
    const url = "postgres://u@h1/db"
    const { options } = yield* openedOnDemand(read(url), { url: Redacted.make(url) })
    const others = [
      ...Object.keys(new pg.Pool().options),
      "Client",
      "application_name",
      "connectionString",
      "onConnect"
    ]
    const set = Object.keys(options).filter((name) => !others.includes(name))
    expect(set).toContain("query_timeout")
    for (const name of set) {
      for (const text of [`${url}?${name}=1`, `postgres://u@h1,h2/db?sslmode=require&${name}=s3cr3t`]) {
        const refused = readDatabaseUrl(text, "read")
        expect(Either.isLeft(refused) && refused.left, text).toMatch(new RegExp(`^must not have ${name}: (?!.*s3cr3t)`))
      }
    }
  })

  it.each([
    "postgres://u:s3cr3t@h1:0,h2/db",
    "postgres://u:s3cr3t@h1:65536,h2/db",
    "postgres://u:s3cr3t@h1:x,h2/db",
    "postgres://u:s3cr3t@h1,,h2/db",
    "postgres://u:s3cr3t@,/db",
    "postgres://u:s3cr3t@h1,h2@h3,/db",
    "postgres://u:s3cr3t@/db?host=h1,&port=1",
    "postgres://u:s3cr3t@/db?host=h1,h2,h3&port=1,2",
    "mysql://u:s3cr3t@h1,h2/db",
    ""
  ])("%s is refused, and not repeated in the message", (url) => {
    const refused = readDatabaseUrl(url, "write")
    expect(Either.isLeft(refused) && refused.left.startsWith("must ")).toBe(true)
    expect(JSON.stringify(refused)).not.toContain("s3cr3t")
  })

  it.each([
    "postgresql://u:1234#x@host/db",
    "postgresql://u:1234/x@host/db",
    "postgresql://u:1234?x@host/db",
    "postgresql://u:1234,56/x@host/db",
    "postgresql://u:1234,56?x@h1,h2/db",
    "postgresql://u:1234,56#x@host/db"
  ])("%s, with a password that is not escaped, is not taken for hosts in a message", (url) => {
    expect(hostsOf(url)).toBe("its host")
  })

  it("may be any text: it is read or refused, without an error", () => {
    const parts = FastCheck.constantFrom(
      "postgres://",
      ",",
      "@",
      ":",
      "/",
      "?",
      "#",
      "host=",
      "h",
      "5432",
      "[",
      "]",
      "%",
      "="
    )
    const texts = FastCheck.array(FastCheck.oneof(parts, FastCheck.string({ maxLength: 3 })), { maxLength: 20 })
    FastCheck.assert(
      FastCheck.property(texts, (some) => {
        const url = some.join("")
        expect(Either.isEither(readDatabaseUrl(url, "write"))).toBe(true)
        expect(typeof hostsOf(url)).toBe("string")
      })
    )
  })
})
