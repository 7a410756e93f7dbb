import {
  Cause,
  Effect,
  Exit,
  FastCheck,
  Fiber,
  HashMap,
  Layer,
  Logger,
  LogLevel,
  Option,
  Redacted,
  Scope,
  TestClock
} from "effect"
import { type Mail, Mailer, type MailerOptions } from "../../../src/platform/kit/Mailer.ts"
import { eventuallyTrue } from "../../harness/Eventually.ts"
import { makeMailbox } from "../../harness/Mailbox.ts"
import { describe, expect, it } from "../../harness/Tests.ts"

const from = "Payments <no-reply@payments.example>"
const secret = "https://payments.example/identity/sign-in#c2VjcmV0LXRva2Vu"
const mail: Mail = { to: "ana@example.com", subject: "Your sign-in link", text: `Open ${secret}\n` }

const makeMailer = (smtpUrl: Option.Option<Redacted.Redacted>, options: Partial<MailerOptions> = {}) =>
  Effect.map(
    Layer.build(Mailer.layer({ smtpUrl, from, toLog: false, retryAfter: "20 millis", ...options })),
    (context) => Mailer.pipe(Effect.provide(context), Effect.runSync)
  )

/** Every line that is logged, with everything that would be written of it. */
const withLog = <A, E, R>(effect: (lines: ReadonlyArray<string>) => Effect.Effect<A, E, R>) => {
  const lines: Array<string> = []
  const logger = Logger.make(({ annotations, cause, logLevel, message }) => {
    lines.push(
      `${logLevel.label} ${JSON.stringify(message)} ${JSON.stringify(HashMap.toEntries(annotations))} ${Cause.pretty(cause, { renderErrorCause: true })}`
    )
  })
  return effect(lines).pipe(
    Effect.provide(Layer.merge(Logger.replace(Logger.defaultLogger, logger), Logger.minimumLogLevel(LogLevel.All)))
  )
}

describe("mail over SMTP", () => {
  it.scopedLive("is not handed over without TLS where that is required, but to a relay on this machine", function* () {
    const mailbox = yield* makeMailbox()
    yield* (yield* makeMailer(Option.some(mailbox.url), { requireTls: true })).send(mail)
    // The same server by an address that need not be this machine
    const elsewhere = Redacted.make(Redacted.value(mailbox.url).replace("127.0.0.1", "0.0.0.0"))
    const there = yield* makeMailer(Option.some(elsewhere), { requireTls: true })
    expect(yield* Effect.flip(there.send(mail))).toMatchObject({ _tag: "MailNotSent", maybeTaken: false })
    expect(mailbox.mails).toHaveLength(1)
    yield* (yield* makeMailer(Option.some(elsewhere))).send(mail)
    expect(mailbox.mails).toHaveLength(2)
  })

  it.scopedLive("of one sender waits for that sender's others, and no other's waits for all of them", function* () {
    const mailbox = yield* makeMailbox()
    const mailer = yield* makeMailer(Option.some(mailbox.url))
    yield* Effect.forEach(Array.from({ length: 50 }), (_, n) =>
      mailer.queue({ ...mail, to: `guest-${n}@example.com`, sender: "busy" })
    )
    yield* mailer.queue(mail)
    yield* mailer.queue({ ...mail, to: "other@example.com", sender: "other" })
    yield* eventuallyTrue("all mails", () => mailbox.mails.length === 52)
    const order = mailbox.mails.map(({ to }) => to[0])
    expect(order.indexOf("ana@example.com")).toBeLessThan(10)
    expect(order.indexOf("other@example.com")).toBeLessThan(10)
  })

  it.scopedLive("is dropped beyond 100 that wait of one sender, and leaves the others their place", function* () {
    const mailbox = yield* makeMailbox()
    const mailer = yield* makeMailer(Option.some(mailbox.url))
    const queueAll = Effect.forEach(Array.from({ length: 150 }), () => mailer.queue({ ...mail, sender: "busy" }))
    const lines = yield* withLog((written) => Effect.as(queueAll, written))
    yield* mailer.queue({ ...mail, to: "other@example.com", sender: "other" })
    yield* eventuallyTrue("the mails that were not dropped", () => mailbox.mails.length === 101)
    expect(lines.filter((line) => line.includes("100 others of its sender"))).toHaveLength(50)
    yield* mailer.queue({ ...mail, sender: "busy" })
    yield* eventuallyTrue("a mail of the sender after the others", () => mailbox.mails.length === 102)
  })

  it.scopedLive("arrives with its sender, recipient, subject and text, and with its HTML if any", function* () {
    const mailbox = yield* makeMailbox()
    const mailer = yield* makeMailer(Option.some(mailbox.url))
    const text = `Olá João,\n\n${secret}\n\n${"A long line of words ".repeat(20)}\n`
    yield* mailer.send({ ...mail, text, subject: "Convite à padaria" })
    const [received] = mailbox.mails
    expect(received?.to).toEqual(["ana@example.com"])
    expect(received?.headers.get("from")).toBe("Payments <no-reply@payments.example>")
    expect(received?.headers.get("to")).toBe("ana@example.com")
    expect(received?.headers.get("subject")).toMatch(/^=\?UTF-8\?/)
    expect(received?.headers.get("content-type")).toMatch(/^text\/plain/)
    expect(received?.text.trim()).toBe(text.trim())
    yield* mailer.send({ ...mail, html: "<p>Open it</p>" })
    expect(mailbox.mails[1]?.headers.get("content-type")).toMatch(/^multipart\/alternative/)
    expect(mailbox.mails[1]?.raw).toContain("<p>Open it</p>")
  })

  it.scopedLive("signs in at the server where its address says how", function* () {
    const mailbox = yield* makeMailbox({ user: "service", password: "s3cr3t" })
    yield* (yield* makeMailer(Option.some(mailbox.url))).send(mail)
    expect(mailbox.mails).toHaveLength(1)
    const wrong = Redacted.make(Redacted.value(mailbox.url).replace("s3cr3t", "guess"))
    const failure = yield* Effect.flip((yield* makeMailer(Option.some(wrong))).send(mail))
    expect(failure).toMatchObject({ _tag: "MailNotSent", permanent: true })
    expect(failure.message).not.toContain("guess")
  })

  it.scopedLive("takes no header and no recipient out of what it is given", function* () {
    const mailbox = yield* makeMailbox()
    const mailer = yield* makeMailer(Option.some(mailbox.url))
    const hostile = FastCheck.array(
      FastCheck.constantFrom(
        "\r\n",
        "\n",
        "\r",
        "Bcc: eve@example.com",
        " ",
        ",",
        "<eve@example.com>",
        ":",
        "\u0000",
        "é",
        "x"
      ),
      { minLength: 1, maxLength: 8 }
    ).map((parts) => parts.join(""))
    const expectedHeaders = [
      "from",
      "to",
      "subject",
      "message-id",
      "date",
      "mime-version",
      "content-type",
      "content-transfer-encoding"
    ]
    yield* Effect.forEach(FastCheck.sample(hostile, 40), (subject) =>
      Effect.gen(function* () {
        const before = mailbox.mails.length
        yield* mailer.send({ ...mail, subject: `Invitation to ${subject}` })
        const received = mailbox.mails[before]
        expect(received?.to, JSON.stringify(subject)).toEqual(["ana@example.com"])
        expect(
          [...(received?.headers.keys() ?? [])].filter((name) => !expectedHeaders.includes(name)),
          JSON.stringify(subject)
        ).toEqual([])
      })
    )
    // An address is one address, whatever stands in it: the others get nothing
    for (const to of [
      "ana@example.com, eve@example.com",
      "ana@example.com\r\nRCPT TO:<eve@example.com>",
      "Ana <eve@example.com>"
    ]) {
      const before = mailbox.mails.length
      yield* Effect.exit(mailer.send({ ...mail, to }))
      expect(mailbox.mails.slice(before).flatMap((received) => received.to).length, to).toBeLessThanOrEqual(1)
    }
  })

  it.scopedLive("says no more than codes of a refusal, which may quote the mail", () =>
    withLog((lines) =>
      Effect.gen(function* () {
        const mailbox = yield* makeMailbox()
        const mailer = yield* makeMailer(Option.some(mailbox.url))
        mailbox.refuse({ code: 554, message: (raw) => `Listed: ${raw.replaceAll(/\s+/g, " ")}` })
        const failure = yield* Effect.flip(mailer.send(mail))
        expect(failure).toMatchObject({ _tag: "MailNotSent", permanent: true })
        expect(failure.message).toBe("The mail server answered 554 (EMESSAGE)")
        expect(String(failure.cause)).toContain("Listed")
        yield* mailer.queue(mail)
        yield* eventuallyTrue("the log's line", () => lines.some((line) => line.includes("given up")))
        expect(lines.join("\n")).toContain("554")
        expect(lines.join("\n")).not.toContain("c2VjcmV0")
        expect(lines.join("\n")).not.toContain("ana@example.com")
      })
    )
  )
})

describe("queued mail", () => {
  it.scopedLive("is tried again after what may pass, and arrives once", function* () {
    const mailbox = yield* makeMailbox()
    const mailer = yield* makeMailer(Option.some(mailbox.url))
    mailbox.refuse({ code: 451, message: () => "Try later" })
    yield* mailer.queue(mail)
    yield* eventuallyTrue("two attempts", () => mailbox.offered() >= 2)
    mailbox.refuse()
    yield* eventuallyTrue("the mail", () => mailbox.mails.length === 1)
  })

  it.scopedLive("is given up after five attempts, or at once where trying again is of no use", () =>
    withLog((lines) =>
      Effect.gen(function* () {
        const mailbox = yield* makeMailbox()
        const mailer = yield* makeMailer(Option.some(mailbox.url), { retryAfter: "1 millis" })
        const given = (times: number) =>
          eventuallyTrue("giving up", () => lines.filter((line) => line.includes("given up")).length === times)
        mailbox.refuse({ code: 451, message: () => "Try later" })
        yield* mailer.queue(mail)
        yield* given(1)
        expect(mailbox.offered()).toBe(5)
        mailbox.refuse({ code: 550, message: () => "No such person" })
        yield* mailer.queue(mail)
        yield* given(2)
        expect(mailbox.offered()).toBe(6)
      })
    )
  )

  it.scopedLive("does not hold its caller up, nor fail for them, where no server is there", () =>
    withLog((lines) =>
      Effect.gen(function* () {
        // A port that was free a moment ago
        const gone = yield* Effect.scoped(Effect.map(makeMailbox(), ({ url }) => url))
        const mailer = yield* makeMailer(Option.some(gone), { retryAfter: "1 millis" })
        expect(yield* Effect.exit(mailer.queue(mail))).toEqual(Exit.void)
        yield* eventuallyTrue("the log's line", () => lines.some((line) => line.includes("given up")))
        expect(lines.join("\n")).toMatch(/not reached \(E\w+\)/)
        expect(lines.join("\n")).not.toContain("c2VjcmV0")
      })
    )
  )

  it.scopedLive("is still sent when the service stops", function* () {
    const mailbox = yield* makeMailbox()
    const scope = yield* Scope.make()
    const mailer = yield* Scope.extend(makeMailer(Option.some(mailbox.url)), scope)
    yield* Effect.forEach(Array.from({ length: 20 }), () => mailer.queue(mail))
    yield* Scope.close(scope, Exit.void)
    expect(mailbox.mails).toHaveLength(20)
  })

  it.scoped("does not hold up a stop for more than 5 seconds, and is then reported as given up", () =>
    withLog((lines) =>
      Effect.gen(function* () {
        const mailbox = yield* makeMailbox()
        mailbox.refuse({ code: 451, message: () => "Try later" })
        const scope = yield* Scope.make()
        const mailer = yield* Scope.extend(makeMailer(Option.some(mailbox.url), { retryAfter: "1 hour" }), scope)
        yield* mailer.queue(mail)
        yield* eventuallyTrue("a first attempt", () => mailbox.offered() === 1)
        const stop = yield* Effect.fork(Scope.close(scope, Exit.void))
        yield* TestClock.adjust("4900 millis")
        expect(Option.isNone(yield* Fiber.poll(stop))).toBe(true)
        yield* TestClock.adjust("100 millis")
        yield* Fiber.join(stop)
        expect(lines.filter((line) => line.includes("1 mail was given up: the service stopped"))).toHaveLength(1)
      })
    )
  )
})

describe("mail without a server", () => {
  it.scopedLive("goes to the log in local mode, link included", () =>
    withLog((lines) =>
      Effect.gen(function* () {
        yield* (yield* makeMailer(Option.none(), { toLog: true })).send(mail)
        expect(lines).toHaveLength(1)
        expect(lines[0]).toMatch(/^INFO /)
        expect(lines[0]).toContain(secret)
        expect(lines[0]).toContain("ana@example.com")
      })
    )
  )

  it.scopedLive("is refused elsewhere, and its link is not logged", () =>
    withLog((lines) =>
      Effect.gen(function* () {
        const mailer = yield* makeMailer(Option.none())
        expect(yield* Effect.flip(mailer.send(mail))).toMatchObject({ _tag: "MailNotSent", permanent: true })
        yield* mailer.queue(mail)
        yield* eventuallyTrue("the log's line", () => lines.some((line) => line.includes("SMTP_URL")))
        expect(lines.join("\n")).not.toContain("c2VjcmV0")
      })
    )
  )
})
