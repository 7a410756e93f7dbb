import { createHash } from "node:crypto"
import { BlockList } from "node:net"
import { Context, Effect, Exit, Layer, Option, Tracer } from "effect"
import { signInLinkLimits } from "../../src/identity/sign-in/MailLimits.ts"
import { signInMinutes } from "../../src/identity/sign-in/Mails.ts"
import { TestMailbox } from "../harness/Mailbox.ts"
import {
  cookieOf,
  newEmail,
  onServiceWithMail,
  onServiceWithoutConsole,
  personOf,
  signIn,
  signInOwner,
  tokenIn
} from "../harness/SignIn.ts"
import { inDatabase, type RequestOptions, sendRequest, TestService, testPublicUrl } from "../harness/TestService.ts"
import { expect, layer } from "../harness/Tests.ts"
import { expectFailure, refusedWith } from "../surface/http/Refusals.ts"

const askForLink = (email: unknown, options: RequestOptions = {}) =>
  sendRequest("POST", "/identity/sign-in-links", { body: { email }, ...options })

const redeem = (token: unknown, options: RequestOptions = {}) =>
  sendRequest("POST", "/identity/session", { body: { token }, ...options })

const mailedToken = (email: string, options: RequestOptions = {}, nth = 1) =>
  Effect.gen(function* () {
    const mailbox = yield* TestMailbox
    expect((yield* askForLink(email, options)).status).toBe(202)
    return tokenIn(yield* mailbox.mailTo(email, nth))
  })

const invalid = { status: 401, code: "session_invalid", fields: [] }

const api = { roles: { api: true, worker: false } } as const

onServiceWithMail()("signing in", (it) => {
  it.effect("goes by a mailed link, and answers the session with its cookie", function* () {
    const service = yield* TestService
    const email = newEmail()
    const answer = yield* redeem(yield* mailedToken(email))
    expect(answer.status).toBe(200)
    expect(answer.json).toEqual({
      person: { id: expect.stringMatching(/^[0-9a-f-]{36}$/), email },
      organization: null,
      environment: "sandbox",
      workspaces: [],
      expiresAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    })
    const [cookie = "", ...others] = answer.headers.getSetCookie()
    expect(others).toEqual([])
    const [value, ...attributes] = cookie.split("; ")
    expect(value).toMatch(/^__Host-svc_session=[A-Za-z0-9_-]{43}$/)
    expect(attributes.toSorted()).toEqual(["HttpOnly", "Max-Age=43200", "Path=/", "SameSite=Lax", "Secure"])
    const person = personOf(service, cookieOf(answer), answer)
    expect((yield* person.request("GET", "/identity/session")).json).toMatchObject({
      person: { id: person.id, email }
    })
  })

  it.effect("answers an unknown and a known address alike", function* () {
    const known = newEmail()
    yield* signIn(known)
    const answers = [yield* askForLink(known), yield* askForLink(newEmail())]
    for (const answer of answers) {
      expect([answer.status, answer.text]).toEqual([202, '{"sent":true,"toLog":false}'])
    }
    const names = answers.map(({ headers }) => [...headers.keys()].toSorted())
    expect(names[0]).toEqual(names[1])
  })

  it.effect("mails what it is for, how long it holds, and what to do with one that was not expected", function* () {
    const mailbox = yield* TestMailbox
    const email = newEmail()
    yield* askForLink(email)
    const mail = yield* mailbox.mailTo(email)
    expect(mail.to).toEqual([email])
    expect(mail.headers.get("from")).toBe('"connected-payments" <no-reply@payments.example>')
    expect(mail.headers.get("subject")).toBe("Your sign-in link")
    expect(mail.text).toMatch(/sign in to connected-payments/)
    expect(mail.text).toMatch(/once, within 15 minutes/)
    expect(mail.text).toMatch(/did not ask/)
    expect(mail.text).toContain(`${testPublicUrl}/identity/sign-in#`)
  })

  it.effect("makes one person at the first redemption, however the address is written", function* () {
    const email = newEmail()
    const people = inDatabase<{
      count: number
    }>`SELECT count(*)::int AS count FROM payments.people WHERE email = ${email}`
    const mailbox = yield* TestMailbox
    yield* askForLink(email.toUpperCase())
    const first = tokenIn(yield* mailbox.mailTo(email))
    expect(yield* people).toEqual([{ count: 0 }])
    yield* askForLink(email)
    const second = tokenIn(yield* mailbox.mailTo(email, 2))
    const other = yield* mailedToken(newEmail())
    const answers = yield* Effect.all([redeem(first), redeem(second)], { concurrency: 2 })
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 401])
    expect(yield* people).toEqual([{ count: 1 }])
    expect((yield* redeem(other)).status).toBe(200)
    yield* askForLink(email)
    const again = yield* redeem(tokenIn(yield* mailbox.mailTo(email, 3)))
    const [before] = answers.filter(({ status }) => status === 200)
    expect(again.json["person"]).toEqual(before?.json["person"])
  })

  it.effect("takes a token once, also when it is sent ten times at once", function* () {
    const token = yield* mailedToken(newEmail())
    const answers = yield* Effect.all(
      Array.from({ length: 10 }, () => redeem(token)),
      { concurrency: 10 }
    )
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, ...Array.from({ length: 9 }, () => 401)])
    for (const answer of answers.filter(({ status }) => status === 401)) {
      expectFailure(answer, invalid)
      expect(answer.headers.getSetCookie()).toEqual([])
    }
    expectFailure(yield* redeem(token), invalid)
  })

  it.effect("refuses unknown, malformed and expired tokens alike", function* () {
    const token = yield* mailedToken(newEmail())
    const hash = createHash("sha256").update(token).digest()
    const [row] = yield* inDatabase<{ minutes: number }>`
        SELECT extract(epoch FROM expires_at - created_at)::int / 60 AS minutes
        FROM payments.login_tokens WHERE token_hash = ${hash}`
    expect(row?.minutes).toBe(15)
    yield* inDatabase`UPDATE payments.login_tokens SET expires_at = now() - interval '1 second' WHERE token_hash = ${hash}`
    const texts = yield* Effect.forEach([token, "A".repeat(43), "nonsense", "a\u0000b", "'--"], (bad) =>
      Effect.map(redeem(bad), (answer) => {
        expectFailure(answer, invalid, JSON.stringify(bad))
        return answer.json["error"]
      })
    )
    expect(new Set(texts).size).toBe(1)
  })

  it.effect("stores no token: neither the link's nor the session's", function* () {
    const token = yield* mailedToken(newEmail())
    const cookie = cookieOf(yield* redeem(token)).replace("__Host-svc_session=", "")
    const rows = yield* inDatabase<{ row: string }>`
      SELECT t::text AS row FROM payments.login_tokens t UNION ALL SELECT s::text FROM payments.sessions s
      UNION ALL SELECT r::text FROM payments.rate_limits r`
    const stored = rows.map(({ row }) => row).join("\n")
    expect(stored).not.toContain(token)
    expect(stored).not.toContain(cookie)
    const hex = (text: string) => Buffer.from(text).toString("hex")
    expect(stored).not.toContain(hex(token))
    expect(stored).not.toContain(hex(cookie))
  })

  it.effect("refuses what is no e-mail address, no token, or more than was asked for", function* () {
    const bad = [
      "",
      "ana",
      "ana@",
      "@example.com",
      "ana@example..com",
      "ana@-example.com",
      "ana b@example.com",
      "ana@example.com,eve@example.com",
      "Ana <ana@example.com>",
      "ana@example.com\r\nBcc: eve@example.com",
      "ana@example.com\n",
      "ana@example.com ",
      "ana@exämple.com",
      "ana\u0000@example.com",
      `${"a".repeat(65)}@example.com`,
      `ana@${"a.".repeat(130)}com`,
      7,
      null,
      ["ana@example.com"],
      {}
    ]
    for (const email of bad) {
      const answer = yield* askForLink(email)
      expectFailure(answer, { status: 422, code: "validation_failed", fields: ["email"] }, JSON.stringify(email))
    }
    for (const token of ["", "a".repeat(257), 7, null, {}]) {
      expectFailure(yield* redeem(token), { status: 422, code: "validation_failed", fields: ["token"] })
    }
    const extra = { email: newEmail(), admin: true, redirect: "https://evil.example" }
    expectFailure(
      yield* sendRequest("POST", "/identity/sign-in-links", { body: extra }),
      refusedWith(422, "validation_failed", ["admin", "redirect"])
    )
    const token = yield* mailedToken(newEmail())
    expectFailure(yield* sendRequest("POST", `/identity/session?token=${token}`), refusedWith(422, "validation_failed"))
    expectFailure(
      yield* sendRequest("POST", "/identity/session", {
        raw: `token=${token}`,
        headers: { "content-type": "application/x-www-form-urlencoded" }
      }),
      { status: 415, code: "unsupported_media_type" }
    )
    expect((yield* redeem(token)).status).toBe(200)
  })

  it.effect("is refused to a page of another origin, whose visitor it would sign in as somebody else", function* () {
    const token = yield* mailedToken(newEmail())
    for (const origin of ["https://evil.example", "null", `${testPublicUrl}.evil.example`, "http://payments.example"]) {
      const answer = yield* redeem(token, { headers: { origin } })
      expectFailure(answer, { status: 403, code: "origin_not_trusted", fields: [] }, origin)
      expect(answer.headers.getSetCookie()).toEqual([])
    }
    expect((yield* redeem(token, { headers: { origin: testPublicUrl } })).status).toBe(200)
  })
})

onServiceWithoutConsole("without the console, the page that a link opens", (it) => {
  it.effect("uses nothing up, however often it is fetched, and carries no token", function* () {
    const token = yield* mailedToken(newEmail())
    for (const path of ["/identity/sign-in", `/identity/sign-in?token=${token}`, "/identity/invitation"]) {
      const { headers, status, text } = yield* sendRequest("GET", path)
      expect(status).toBe(200)
      expect(headers.get("content-type")).toBe("text/html; charset=utf-8")
      expect(headers.get("cache-control")).toBe("no-store")
      expect(headers.get("referrer-policy")).toBe("no-referrer")
      expect(headers.get("x-content-type-options")).toBe("nosniff")
      expect(headers.getSetCookie()).toEqual([])
      expect(text).not.toContain(token)
      expect(text).toMatch(/^<!doctype html>\n<html lang="en">/)
      expect(text).toMatch(/<h1>.+<\/h1>/)
      expect(text).toMatch(/<button type="button"/)
      expect(text).toMatch(/role="status" aria-live="polite"/)
    }
    expect((yield* sendRequest("HEAD", "/identity/sign-in")).status).toBe(200)
    const [used] = yield* inDatabase<{ used: boolean }>`
        SELECT used_at IS NOT NULL AS used FROM payments.login_tokens
        WHERE token_hash = ${createHash("sha256").update(token).digest()}`
    expect(used).toEqual({ used: false })
  })

  it.effect("runs its own script and style alone, named by their hashes", function* () {
    for (const path of ["/identity/sign-in", "/identity/invitation"]) {
      const { headers, text } = yield* sendRequest("GET", path)
      const hashOf = (element: string) => {
        const [, content = ""] = new RegExp(`<${element}>([\\s\\S]*)</${element}>`).exec(text) ?? []
        expect(content).not.toBe("")
        return `'sha256-${createHash("sha256").update(content).digest("base64")}'`
      }
      expect(headers.get("content-security-policy")).toBe(
        `default-src 'none'; script-src ${hashOf("script")}; style-src ${hashOf("style")}; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
      )
      expect(text).not.toMatch(/\son\w+=|style=|https?:\/\//)
    }
  })
})

/** Runs a page's script as a browser would, against the service itself; answers what the page says when it is done. */
const pressButton = (baseUrl: string, path: string, script: string, hash: string) =>
  Effect.promise(async () => {
    const page = {
      said: "",
      whom: "",
      hidden: true,
      disabled: false,
      removed: false,
      address: `${path}${hash}`,
      cookies: 0
    }
    // What the page says, or shows, once it has asked what its link is for
    let ready = () => {}
    const isReady = new Promise<void>((resolve) => {
      ready = resolve
    })
    let press = () => Promise.resolve()
    const button = {
      set hidden(hidden: boolean) {
        page.hidden = hidden
        ready()
      },
      set disabled(disabled: boolean) {
        page.disabled = disabled
      },
      addEventListener: (_type: string, listener: () => Promise<void>) => {
        press = listener
      },
      remove: () => {
        page.removed = true
      }
    }
    const status = {
      set textContent(text: string) {
        page.said = text
        ready()
      }
    }
    const intro = {
      set textContent(text: string) {
        page.whom = text
      }
    }
    const elements: Readonly<Record<string, object>> = { button, "[role=status]": status, p: intro }
    const send = async (url: string, init: RequestInit) => {
      const headers = { ...init.headers, origin: testPublicUrl }
      const response = await fetch(new URL(url, `${baseUrl}${path}`), { ...init, headers })
      page.cookies += response.headers.getSetCookie().length
      return response
    }
    new Function("document", "location", "history", "fetch", script)(
      { querySelector: (selector: string) => elements[selector] },
      { hash, pathname: path },
      {
        replaceState: (_state: unknown, _title: string, address: string) => {
          page.address = address
        }
      },
      send
    )
    await isReady
    if (!page.hidden) await press()
    return page
  })

onServiceWithoutConsole("the button of that page", (it) => {
  const scriptOf = (path: string) =>
    Effect.flatMap(TestService, ({ request }) =>
      Effect.map(request("GET", path), ({ text }) => /<script>([\s\S]*)<\/script>/.exec(text)?.[1] ?? "")
    )

  it.effect("signs in with the token behind the #, once, and takes it out of the browser's history", function* () {
    const { baseUrl } = yield* TestService
    const email = newEmail()
    const token = yield* mailedToken(email)
    const path = "/identity/sign-in"
    const script = yield* scriptOf(path)
    const done = yield* pressButton(baseUrl, path, script, `#${token}`)
    expect(done).toMatchObject({ removed: true, address: path, cookies: 1 })
    expect(done.whom).toBe(`Sign in to connected-payments in this browser as ${email}.`)
    expect(done.said).toBe(`You are signed in as ${email}. You can close this page.`)
    const again = yield* pressButton(baseUrl, path, script, `#${token}`)
    expect(again).toMatchObject({ whom: "", hidden: true, removed: false, cookies: 0 })
    expect(again.said).toMatch(/not valid/)
  })

  it.effect("says beforehand what an invitation is to, and whom it signs in", function* () {
    const { baseUrl } = yield* TestService
    const owner = yield* signInOwner
    const email = newEmail()
    yield* owner.request("POST", "/identity/invitations", { body: { email, role: "viewer" } })
    const token = tokenIn(yield* (yield* TestMailbox).mailTo(email))
    const path = "/identity/invitation"
    const done = yield* pressButton(baseUrl, path, yield* scriptOf(path), `#${token}`)
    expect(done.whom).toContain("to the organization “Bakery” with the role viewer")
    expect(done.whom).toContain(`as ${email}.`)
    expect(done).toMatchObject({ removed: true, cookies: 1 })
  })

  it.effect("asks what its link is for without using it up; refuses tokens that are not good", function* () {
    const email = newEmail()
    const token = yield* mailedToken(email)
    const preview = (path: string, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
      sendRequest("POST", `/identity/${path}/preview`, { body, headers })
    for (let n = 0; n < 3; n++) {
      const answer = yield* preview("sign-in", { token })
      expect(answer.status, answer.text).toBe(200)
      expect(answer.json).toEqual({ email, expiresAt: expect.stringMatching(/Z$/) })
      expect(answer.headers.getSetCookie()).toEqual([])
    }
    const foreign = { status: 403, code: "origin_not_trusted", fields: [] }
    expectFailure(yield* preview("sign-in", { token }, { origin: "https://evil.example" }), foreign)
    expect((yield* redeem(token)).status).toBe(200)
    for (const [path, bad] of [
      ["sign-in", token],
      ["sign-in", "nonsense"],
      ["invitation", token]
    ] as const) {
      expectFailure(yield* preview(path, { token: bad }), invalid, path)
    }
    const long = { status: 422, code: "validation_failed", fields: ["token"] }
    expectFailure(yield* preview("sign-in", { token: "a".repeat(257) }), long)
  })

  it.effect("is not shown where the link lost its token", function* () {
    const { baseUrl } = yield* TestService
    for (const path of ["/identity/sign-in", "/identity/invitation"]) {
      const page = yield* pressButton(baseUrl, path, yield* scriptOf(path), "")
      expect(page).toMatchObject({ hidden: true, said: "This link is not complete. Open it again from the mail." })
    }
  })
})

onServiceWithMail({ failedAuthenticationsPerMinute: 8 })("signing in is limited", (it) => {
  it.effect("to 5 links per address and 15 minutes of one client, and to 8 requests a minute", function* () {
    const email = newEmail()
    for (let n = 1; n <= 5; n++) {
      expect((yield* askForLink(n % 2 === 0 ? email : email.toUpperCase())).status).toBe(202)
    }
    const refused = yield* askForLink(email)
    expectFailure(refused, { status: 429, code: "rate_limit_exceeded", fields: [] })
    const wait = Number(refused.headers.get("retry-after"))
    expect(wait).toBeGreaterThan(120)
    expect(wait).toBeLessThanOrEqual(180)
    expect((yield* askForLink(newEmail())).status).toBe(202)
    expect((yield* askForLink(newEmail())).status).toBe(202)
    const tooMany = yield* askForLink(newEmail())
    expectFailure(tooMany, { status: 429, code: "rate_limit_exceeded", fields: [] })
    expect(Number(tooMany.headers.get("retry-after"))).toBeLessThanOrEqual(8)
  })

  it.effect("to 8 failures a minute of one client, while a good link is still taken", function* () {
    yield* Effect.flatMap(TestService, ({ passTime }) => passTime("1 minute"))
    const token = yield* mailedToken(newEmail())
    for (let n = 1; n <= 4; n++) {
      expectFailure(yield* redeem("A".repeat(43)), invalid)
      const preview = sendRequest("POST", "/identity/sign-in/preview", { body: { token: "A".repeat(43) } })
      expectFailure(yield* preview, invalid)
    }
    const refused = yield* redeem("A".repeat(43))
    expectFailure(refused, { status: 429, code: "rate_limit_exceeded", fields: [] })
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1)
    expect((yield* redeem(token)).status).toBe(200)
  })
})

const behindProxy = new BlockList()
behindProxy.addAddress("127.0.0.1")

onServiceWithMail({ trustedProxies: behindProxy })("signing in by link", (it) => {
  it.effect("is left to a person whose links a stranger uses up, however the address is written", function* () {
    const email = newEmail()
    const [name = "", host = ""] = email.split("@")
    const ask = (client: string, to = email) => askForLink(to, { headers: { "x-forwarded-for": client } })
    const stranger = Array.from({ length: 12 }, (_, n) => ask("203.0.113.9", `${name}+n${n}@${host}`))
    const statuses = (yield* Effect.all(stranger)).map(({ status }) => status)
    expect(statuses).toEqual(Array.from({ length: 12 }, (_, n) => (n < 5 ? 202 : 429)))
    for (let n = 0; n < 5; n++) expect((yield* ask("198.51.100.7")).status).toBe(202)
    expectFailure(yield* ask("198.51.100.7"), { status: 429, code: "rate_limit_exceeded", fields: [] })
  })

  it.effect("is left to a person whose links strangers in several networks use up", function* () {
    const email = newEmail()
    const ask = (client: string, to: string) => askForLink(to, { headers: { "x-forwarded-for": client } })
    const strangers = (net: string, to: (n: number) => string) =>
      Effect.forEach(
        Array.from({ length: 12 }, (_, n) => n),
        (n) => ask(`${net}.${n % 4}`, to(n))
      )
    const [name = "", host = ""] = email.split("@")
    // Answered alike, whether the link is mailed or not
    expect((yield* strangers("203.0.113", (n) => `${name}+n${n}@${host}`)).map(({ status }) => status)).toEqual(
      Array.from({ length: 12 }, () => 202)
    )
    expect((yield* ask("198.51.100.7", email)).status).toBe(202)
    yield* strangers("203.0.114", () => email)
    // With links of strangers alone, one of them is always valid, and signs in whose mailbox it is
    const refused = yield* ask("192.0.2.1", email)
    expectFailure(refused, { status: 429, code: "rate_limit_exceeded", fields: [] })
    expect((24 * 60) / signInLinkLimits.perDay).toBeLessThan(signInMinutes)
  })

  it.effect("is left to a person whose address has dots or a tag, whatever strangers ask for", function* () {
    const [name = ""] = newEmail().split("@")
    const dotted = `${name.slice(0, 3)}.${name.slice(3)}+own@gmail.com`
    yield* redeem(yield* mailedToken(dotted))
    const ask = (client: string, to: string) => askForLink(to, { headers: { "x-forwarded-for": client } })
    for (let n = 0; n < 14; n++) expect((yield* ask(`203.0.115.${n % 4}`, `${name}+n${n}@gmail.com`)).status).toBe(202)
    yield* mailedToken(dotted, { headers: { "x-forwarded-for": "192.0.2.9" } }, 2)
    const { mails } = yield* TestMailbox
    expect(mails.filter(({ to }) => to.includes(`${name}+n13@gmail.com`))).toEqual([])
  })

  it.effect("takes an address of a provider that ignores dots for one mailbox, wherever they are", function* () {
    const name = newEmail().split("@")[0] ?? ""
    const dotted = (n: number) => `${name.slice(0, n)}.${name.slice(n)}@${n % 2 === 0 ? "gmail" : "GoogleMail"}.com`
    const asked = Array.from({ length: 6 }, (_, n) =>
      askForLink(dotted(n + 1), { headers: { "x-forwarded-for": "203.0.113.77" } })
    )
    expect((yield* Effect.all(asked)).map(({ status }) => status)).toEqual([202, 202, 202, 202, 202, 429])
  })
})

/** Every span that the service makes. What an exporter sends of it: its name, its attributes, and how it failed. */
class Spans extends Context.Tag("test/SignIn/Spans")<Spans, Array<Tracer.Span>>() {}

const traced = Layer.unwrapEffect(
  Effect.gen(function* () {
    const spans = yield* Spans
    const { url } = yield* TestMailbox
    const base = yield* Effect.tracer
    const tracer = Tracer.make({
      context: base.context,
      span: (...args) => {
        const span = base.span(...args)
        spans.push(span)
        return span
      }
    })
    return TestService.layer({ ...api, smtpUrl: Option.some(url) }).pipe(Layer.provide(Layer.setTracer(tracer)))
  })
).pipe(
  Layer.provideMerge(
    Layer.merge(
      TestMailbox.layer,
      Layer.sync(Spans, () => [])
    )
  )
)

layer(traced)("traces of signing in", (it) => {
  it.effect("hold neither the link's token nor the session's", function* () {
    const token = yield* mailedToken(newEmail())
    yield* sendRequest("GET", `/identity/sign-in`)
    const answer = yield* redeem(token)
    const person = personOf(yield* TestService, cookieOf(answer), answer)
    yield* redeem(token)
    expect((yield* person.request("GET", "/identity/session")).status).toBe(200)
    const text = (yield* Spans)
      .map(({ attributes, name, status }) => {
        const failed = status._tag === "Ended" && Exit.isFailure(status.exit) ? String(status.exit) : ""
        return JSON.stringify([name, ...attributes, failed])
      })
      .join("\n")
    expect(text).toContain("/identity/sign-in")
    expect(text).toContain("SignIn.redeem")
    // Not `toContain`: its failure would print every span
    expect(text.includes(token)).toBe(false)
    expect(text.includes(person.cookie.replace("__Host-svc_session=", ""))).toBe(false)
  })
})
