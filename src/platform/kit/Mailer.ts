import { Data, Duration, Effect, FiberSet, Option, Predicate, Redacted, Schedule } from "effect"
import { errorCode } from "../errors/ErrorCode.ts"
import { serviceWith } from "./Service.ts"

/** Mail to people: sign-in links, invitations, warnings. Over SMTP; in local mode without a server, to the log. */

/** One mail. `text` and `html` say the same; without `html` it is plain text. */
export interface Mail {
  /** One address, as the identity schema `Email` accepts it; the mail server refuses anything else. */
  readonly to: string
  /** One line: line breaks become spaces. */
  readonly subject: string
  readonly text: string
  readonly html?: string
  /** One sender's mails wait for each other, but not for others'. */
  readonly sender?: string
  /** Whether losing it is better than sending it twice: there is no retry if the server may have accepted it. */
  readonly once?: boolean
}

/**
 * The mail server did not accept a mail. The message holds only codes: a server's answer can quote the mail, and with
 * it a sign-in link. `cause` is for a debugger, never for a log.
 */
export class MailNotSent extends Data.TaggedError("MailNotSent")<{
  readonly message: string
  /** Whether another try would fail too. */
  readonly permanent: boolean
  /** Whether the server may still have accepted it: it did not answer in time, or the connection broke. */
  readonly maybeTaken?: boolean
  readonly cause?: unknown
}> {}

export interface MailerOptions {
  /** `smtp://` or `smtps://`, with user and password if the server requires them. */
  readonly smtpUrl: Option.Option<Redacted.Redacted>
  /** The sender: `name <address>`. */
  readonly from: string
  /** Without a server: whether mails are written to the log, including their links (local mode), or refused. */
  readonly toLog: boolean
  /** Without STARTTLS, no mail is handed over; a relay on this machine is exempt. Default false. */
  readonly requireTls?: boolean
  /** Wait before the first retry of a queued mail, tripled for each of the three after it. Default 2 s. */
  readonly retryAfter?: Duration.DurationInput
}

type Send = (mail: Mail) => Effect.Effect<void, MailNotSent>

/**
 * Sends a mail to several people. Fails if the mail server accepted none of the mails; if it accepted any, queues the
 * others. A mail sent `once` that it may have accepted counts as accepted. Returns whether it confirmed any.
 */
export const sendToSeveral = Effect.fnUntraced(function* (mailer: Mailer["Type"], mails: ReadonlyArray<Mail>) {
  const [failed, taken] = yield* Effect.partition(mails, (mail) =>
    Effect.mapError(mailer.send(mail), (error) => ({ mail, error }))
  )
  const refused = failed.filter(({ error, mail }) => !(mail.once === true && error.maybeTaken === true))
  const [first] = refused
  if (first !== undefined && refused.length === mails.length) {
    return yield* (refused.find(({ error }) => !error.permanent) ?? first).error
  }
  yield* Effect.forEach(refused, ({ mail }) => mailer.queue(mail), { discard: true })
  return taken.length > 0
})

const writeToLog: Send = ({ subject, text, to }) =>
  Effect.logInfo(`Mail to ${to} (SMTP_URL is not set)\n${subject}\n\n${text}`)

const refuse: Send = () => new MailNotSent({ message: "No mail server is set (SMTP_URL)", permanent: true })

/** Time limits for a mail server that does not answer. */
const timeouts = { connectionTimeout: 10_000, greetingTimeout: 10_000, socketTimeout: 30_000, dnsTimeout: 10_000 }

/** SMTP's 5xx answers are final; lost connections and 4xx answers are not. */
const fromCause = (cause: unknown): MailNotSent => {
  const code = errorCode(cause) ?? "unknown"
  const answer = Predicate.hasProperty(cause, "responseCode") ? Number(cause.responseCode) : Number.NaN
  return new MailNotSent({
    message: Number.isNaN(answer)
      ? `The mail server was not reached (${code})`
      : `The mail server answered ${answer} (${code})`,
    permanent: answer >= 500,
    maybeTaken: Number.isNaN(answer) && !isFromBefore(cause),
    cause
  })
}

/** Failures that occur before the mail is handed over. */
const codesFromBefore = ["ECONNREFUSED", "EDNS", "ENOTFOUND", "ETLS", "EAUTH", "ENOAUTH", "EENVELOPE"]
const messagesFromBefore = ["Connection timeout", "Greeting never received"]

const isFromBefore = (cause: unknown): boolean => {
  const has = (name: string, values: ReadonlyArray<string>) =>
    Predicate.hasProperty(cause, name) && values.includes(String(cause[name]))
  return has("code", codesFromBefore) || has("syscall", ["connect"]) || has("message", messagesFromBefore)
}

const isOnThisMachine = (url: string): boolean =>
  URL.canParse(url) && /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(new URL(url).hostname)

/** An SMTP transport with pooled connections; it opens no files and no URLs named in a mail. */
const makeSmtp = (url: Redacted.Redacted, { from, requireTls = false }: MailerOptions) =>
  Effect.map(
    Effect.acquireRelease(
      // Only a service that sends mail loads the package
      Effect.map(
        Effect.promise(() => import("nodemailer")),
        ({ createTransport }) =>
          createTransport({
            url: Redacted.value(url),
            requireTLS: requireTls && !isOnThisMachine(Redacted.value(url)),
            pool: true,
            maxConnections: 2,
            // By default, it would resend a mail up to five times if the connection broke before the server's answer
            maxRequeues: 0,
            disableFileAccess: true,
            disableUrlAccess: true,
            ...timeouts
          })
      ),
      (transport) => Effect.sync(() => transport.close())
    ),
    (transport): Send =>
      Effect.fn("Mailer.send")(function* ({ html, subject, text, to }: Mail) {
        yield* Effect.tryPromise({
          // As an object, an address is a single one: no list, name or comment is parsed
          try: () =>
            transport.sendMail({
              from,
              to: { name: "", address: to },
              subject,
              text,
              ...(html === undefined ? {} : { html })
            }),
          catch: fromCause
        })
      })
  )

/** With more, something is wrong with the mail server, and they would only fill memory. */
const maxQueued = 1000

const maxQueuedOfSender = 100

const drainTimeout = "5 seconds"

/** A sender's mails in the queue; removed with the last one. */
interface SenderQueue {
  readonly turn: Effect.Semaphore
  waiting: number
}

/** Waits briefly for the mails under way; logs how many are given up. */
const drained = (sending: FiberSet.FiberSet<void>) =>
  // Finalizers can't be interrupted, and so would outlast any timeout
  FiberSet.awaitEmpty(sending).pipe(
    Effect.interruptible,
    Effect.timeoutOption(drainTimeout),
    Effect.zipRight(FiberSet.size(sending)),
    Effect.flatMap((count) =>
      count === 0
        ? Effect.void
        : Effect.logWarning(
            `${count} ${count === 1 ? "mail was" : "mails were"} given up: the service stopped before the mail server accepted ${count === 1 ? "it" : "them"}`
          )
    )
  )

const makeQueue = Effect.fnUntraced(function* (send: Send, retryAfter: Duration.Duration) {
  const sending = yield* FiberSet.make<void>()
  yield* Effect.addFinalizer(() => drained(sending))
  const senders = new Map<string, SenderQueue>()
  const queueOf = (sender: string): SenderQueue => {
    const known = senders.get(sender)
    if (known !== undefined) {
      return known
    }
    const made = { turn: Effect.unsafeMakeSemaphore(1), waiting: 0 }
    senders.set(sender, made)
    return made
  }
  const leave = (sender: string) =>
    Effect.sync(() => {
      const queue = queueOf(sender)
      queue.waiting -= 1
      if (queue.waiting === 0) {
        senders.delete(sender)
      }
    })
  /** Each try takes a turn of its own, so that a mail that waits for a retry does not hold up others. */
  const inTurn = (mail: Mail) =>
    mail.sender === undefined ? send(mail) : queueOf(mail.sender).turn.withPermits(1)(send(mail))
  const patiently = (mail: Mail) =>
    inTurn(mail).pipe(
      Effect.retry({
        while: (error) => !error.permanent && !(mail.once === true && error.maybeTaken === true),
        schedule: Schedule.exponential(retryAfter, 3).pipe(Schedule.intersect(Schedule.recurs(4)))
      }),
      Effect.catchAll((error) => Effect.logWarning(`A mail was given up: ${error.message}`))
    )
  return Effect.fnUntraced(function* (mail: Mail) {
    if ((yield* FiberSet.size(sending)) >= maxQueued) {
      yield* Effect.logWarning(`A mail was dropped: ${maxQueued} others wait for the mail server`)
      return
    }
    const { sender } = mail
    if (sender === undefined) {
      yield* FiberSet.run(sending, patiently(mail))
      return
    }
    const queue = queueOf(sender)
    if (queue.waiting >= maxQueuedOfSender) {
      yield* Effect.logWarning(`A mail was dropped: ${maxQueuedOfSender} others of its sender wait for the mail server`)
      return
    }
    queue.waiting += 1
    yield* FiberSet.run(sending, Effect.ensuring(patiently(mail), leave(sender)))
  })
})

const make = Effect.fnUntraced(function* (options: MailerOptions) {
  const send = yield* Option.match(options.smtpUrl, {
    onSome: (url) => makeSmtp(url, options),
    onNone: () => Effect.succeed(options.toLog ? writeToLog : refuse)
  })
  const toLog = Option.isNone(options.smtpUrl) && options.toLog
  return {
    /** Whether mails are written to the log instead. */
    toLog,
    /** Sends now; completes when the mail server has accepted the mail. */
    send,
    /**
     * Sends in the background, with up to 4 retries: the caller neither waits nor learns of a failure, which is logged
     * without the mail. Mails that are queued when the service stops have 5 more seconds. A sender's mails are sent one
     * at a time, and at most 100 of them wait.
     */
    queue: yield* makeQueue(send, Duration.decode(options.retryAfter ?? "2 seconds"))
  }
})

export class Mailer extends serviceWith<Mailer>()("connected-payments/kit/Mailer", make) {}
