import { randomUUID } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { FastCheck } from "effect"
import { tagOfKey, tagOfToken, withTag } from "../../src/cells/RoutingTag.ts"
import { readBodyTarget } from "../../src/cells/router/BodyTarget.ts"
import { targetOf } from "../../src/cells/router/Target.ts"

const secret = FastCheck.stringMatching(/^[A-Za-z0-9_-]{43}$/)
const cellName = FastCheck.stringMatching(/^[a-z][a-z0-9-]{0,31}$/)
const uuid = FastCheck.uuid()

/** A text of which some characters are escaped, in either case. */
const spelled = (text: string) =>
  FastCheck.array(FastCheck.constantFrom("plain", "lower", "upper"), {
    minLength: text.length,
    maxLength: text.length
  }).map((forms) =>
    [...text]
      .map((character, index) => {
        const hex = `%${(character.codePointAt(0) ?? 0).toString(16).padStart(2, "0")}`
        return character === "/" || forms[index] === "plain"
          ? character
          : forms[index] === "lower"
            ? hex
            : hex.toUpperCase()
      })
      .join("")
  )

describe("the target of a request", () => {
  it("is the organization of its path, however it is spelled", () => {
    FastCheck.assert(
      FastCheck.property(
        uuid.chain((id) =>
          FastCheck.tuple(
            FastCheck.constant(id),
            spelled(`/v2/organizations/${id}`),
            FastCheck.constantFrom(
              "",
              "/",
              "/provider/products",
              "/x?organization=y",
              "?a=/v2/organizations/z",
              ";x",
              "#x"
            ),
            FastCheck.boolean()
          )
        ),
        ([id, path, rest, isAbsolute]) => {
          const url = `${isAbsolute ? "http://elsewhere.example" : ""}${path}${rest}`
          expect(targetOf("GET", url, {})).toEqual({ by: "organization", id })
        }
      )
    )
    const id = randomUUID()
    expect(targetOf("POST", `/v2/organizations/${id.toUpperCase()}/x`, {})).toEqual({ by: "organization", id })
  })

  it("is the home for paths that no cell reads as an organization's, and never throws", () => {
    const id = randomUUID()
    for (const path of [
      `//v2/organizations/${id}/x`,
      `/v2//organizations/${id}/x`,
      `/V2/organizations/${id}/x`,
      `/v2%2Forganizations/${id}/x`,
      `/v2/organizations/${id}%2Fx`,
      `/v2/organizations/${id}%00/x`,
      `/v2/organizations/%25${id}/x`,
      `/v2/organizations/x/../${id}/y`,
      "/v2/organizations/%/x",
      "/v2/organizations/%ff/x",
      "/v2/organizations/",
      "*",
      "",
      "elsewhere:443"
    ]) {
      expect([path, targetOf("POST", path, {}).by]).toEqual([path, "home"])
    }
    FastCheck.assert(
      FastCheck.property(FastCheck.string(), FastCheck.string(), FastCheck.string(), (url, cookie, key) => {
        targetOf("GET", url, { cookie, "x-api-key": key, authorization: key })
      })
    )
  })

  it("is the tag of the credential that the cell would read", () => {
    FastCheck.assert(
      FastCheck.property(uuid, cellName, secret, secret, (id, name, one, other) => {
        const organization = { kind: "organization", id }
        const cell = { kind: "cell", name }
        expect(tagOfToken(withTag(id, one))).toEqual(organization)
        expect(tagOfToken(withTag(name, one))).toEqual(cell)
        expect(tagOfToken(one)).toBeUndefined()
        const key = `pk_test_${withTag(id, one)}`
        expect(tagOfKey(key)).toEqual(organization)
        expect(targetOf("POST", "/mcp", { "x-api-key": key })).toEqual({ by: "tag", tag: organization })
        expect(targetOf("POST", "/mcp", { authorization: `Bearer ${key}` })).toEqual({ by: "tag", tag: organization })
        expect(targetOf("POST", "/mcp", { authorization: `Bearer ${key}`, "x-api-key": `pk_test_${other}` })).toEqual({
          by: "home"
        })
        const cookie = `a=b; svc_session=${withTag(name, one)}; svc_session=${withTag(id, other)}`
        expect(targetOf("GET", "/identity/session", { cookie })).toEqual({ by: "tag", tag: cell })
        expect(targetOf("GET", "/console/payments", { cookie })).toEqual({ by: "anything", tag: cell })
        expect(targetOf("GET", "/identity/session", { cookie: `svc_session=${one}` })).toEqual({ by: "home" })
      })
    )
  })

  it("is in the body for what has nothing else, in any spelling, and only where a cell reads one", () => {
    for (const [path, part] of [
      ["/webhooks/provider", "notification"],
      ["/webhooks/provider/", "notification"],
      ["/webhooks/provider?x=1", "notification"],
      ["/webhooks/%70rovider/thin", "thin notification"],
      ["/identity/sign-in-links", "email"],
      ["/identity/session", "token"],
      ["/identity/invitation/preview", "token"]
    ] as const) {
      expect(targetOf("POST", path, {})).toEqual({ by: "body", part })
      expect(targetOf("PUT", path, {}).by).not.toBe("body")
    }
  })
})

describe("what a body says", () => {
  const read = (part: Parameters<typeof readBodyTarget>[0], text: string) => readBodyTarget(part, Buffer.from(text))

  it("is the account of the mode, as a cell reads it: the last of a key that is repeated, and visible text alone", () => {
    expect(read("notification", '{"account":"acct_1","livemode":true}')).toEqual({
      by: "account",
      environment: "production",
      accountId: "acct_1"
    })
    expect(read("notification", '{"account":"acct_1","data":{"account":"acct_3"},"account":"acct_2"}')).toMatchObject({
      environment: "sandbox",
      accountId: "acct_2"
    })
    for (const account of [`"${"a".repeat(256)}"`, '""', '"acct_\\u0000"', '"acct 1"', '"ácct"', "7", "null", "[]"]) {
      expect([account, read("notification", `{"account":${account}}`)]).toEqual([account, undefined])
    }
    const thin = { id: "evt_1", object: "v2.core.event", type: "v2.core.account.updated", created: 1, livemode: false }
    expect(read("thin notification", JSON.stringify({ ...thin, context: "org_1/acct_7" }))).toMatchObject({
      accountId: "acct_7"
    })
  })

  it("is the person of an address in any case, and the tag of a token", () => {
    expect(read("email", '{"email":"Ana@Example.com"}')).toEqual(read("email", '{"email":"ana@example.com"}'))
    const id = randomUUID()
    expect(read("token", JSON.stringify({ token: `${id}.${"a".repeat(43)}` }))).toEqual({
      by: "tag",
      tag: { kind: "organization", id }
    })
    expect(read("token", JSON.stringify({ token: "a".repeat(43) }))).toBeUndefined()
  })

  it("is nothing for everything else, without a failure", () => {
    const parts = ["notification", "thin notification", "email", "token"] as const
    FastCheck.assert(
      FastCheck.property(FastCheck.constantFrom(...parts), FastCheck.uint8Array({ maxLength: 200 }), (part, bytes) => {
        readBodyTarget(part, Buffer.from(bytes))
      })
    )
    for (const part of parts) {
      for (const text of ["", "[", "7", "null", "[]", "[".repeat(100_000), '{"__proto__":{"account":"acct_1"}}']) {
        expect(read(part, text)).toBeUndefined()
      }
    }
  })
})
