import type { Socket } from "node:net"
import { Context, Effect, Layer, Option, Redacted, Scope } from "effect"
import { SMTPServer } from "smtp-server"
import { eventually } from "./Eventually.ts"

/** A mail as the server took it: the envelope's recipients, the headers, and the decoded text. */
export interface ReceivedMail {
  readonly to: ReadonlyArray<string>
  readonly headers: ReadonlyMap<string, string>
  readonly text: string
  readonly raw: string
}

export interface SmtpRefusal {
  readonly code: number
  readonly message: (raw: string) => string
}

export interface Mailbox {
  readonly url: Redacted.Redacted
  readonly mails: ReadonlyArray<ReceivedMail>
  readonly offered: () => number
  /** Answers this to every mail until it is called with nothing. */
  readonly refuse: (refusal?: SmtpRefusal) => void
  /** Answers 450 to every mail to this address, before its text, until it is called with nothing. */
  readonly refuseTo: (address?: string) => void
  /** From now on takes every mail and breaks the connection off in place of saying so, or no more. */
  readonly breakOff: (breaks: boolean) => void
  readonly mailTo: (address: string, nth?: number) => Effect.Effect<ReceivedMail>
}

const parse = (raw: string, to: ReadonlyArray<string>): ReceivedMail => {
  const [head = "", ...body] = raw.split("\r\n\r\n")
  const headers = new Map(
    head
      .replaceAll(/\r\n[ \t]+/g, " ")
      .split("\r\n")
      .map((line): [string, string] => {
        const colon = line.indexOf(":")
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
      })
  )
  const encoded = body.join("\r\n\r\n")
  const text =
    headers.get("content-transfer-encoding") === "quoted-printable"
      ? Buffer.from(
          encoded
            .replaceAll(/=\r\n/g, "")
            .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
          "latin1"
        ).toString("utf8")
      : encoded
  return { to, headers, text: text.replaceAll("\r\n", "\n"), raw }
}

export const makeMailbox = (
  options: { readonly port?: number; readonly user?: string; readonly password?: string } = {}
): Effect.Effect<Mailbox, never, Scope.Scope> =>
  Effect.gen(function* () {
    const mails: Array<ReceivedMail> = []
    let refusal: SmtpRefusal | undefined
    let offered = 0
    let breaksOff = false
    let refused: string | undefined
    const sockets = new Set<Socket>()
    const server = new SMTPServer({
      disabledCommands: options.user === undefined ? ["STARTTLS", "AUTH"] : ["STARTTLS"],
      authOptional: options.user === undefined,
      allowInsecureAuth: true,
      onAuth: (auth, _session, callback) =>
        auth.username === options.user && auth.password === options.password
          ? callback(null, { user: auth.username })
          : callback(new Error("Bad credentials")),
      onRcptTo: ({ address }, _session, callback) =>
        callback(address === refused ? Object.assign(new Error("Domain not found"), { responseCode: 450 }) : null),
      onData: (stream, session, callback) => {
        const chunks: Array<Buffer> = []
        stream.on("data", (chunk: Buffer) => chunks.push(chunk))
        stream.on("end", () => {
          offered += 1
          const raw = Buffer.concat(chunks).toString("utf8")
          if (refusal !== undefined) {
            callback(Object.assign(new Error(refusal.message(raw)), { responseCode: refusal.code }))
            return
          }
          mails.push(
            parse(
              raw,
              session.envelope.rcptTo.map(({ address }) => address)
            )
          )
          if (breaksOff) for (const socket of sockets) socket.destroy()
          else callback()
        })
      }
    })
    server.server.on("connection", (socket: Socket) => {
      sockets.add(socket)
      socket.on("close", () => sockets.delete(socket))
    })
    // A client that goes away in the middle is none of the test's failures
    server.on("error", () => {})
    yield* Effect.acquireRelease(
      Effect.async<void>((resume) => {
        server.listen(options.port ?? 0, "127.0.0.1", () => resume(Effect.void))
      }),
      () => Effect.async<void>((resume) => void server.close(() => resume(Effect.void)))
    )
    const address = server.server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    const credentials = options.user === undefined ? "" : `${options.user}:${options.password ?? ""}@`
    return {
      url: Redacted.make(`smtp://${credentials}127.0.0.1:${port}`),
      mails,
      offered: () => offered,
      refuse: (next) => {
        refusal = next
      },
      refuseTo: (address) => {
        refused = address
      },
      breakOff: (breaks) => {
        breaksOff = breaks
      },
      mailTo: (address, nth = 1) =>
        Effect.orDie(
          eventually(
            `mail ${nth} to ${address}`,
            Effect.sync(() => Option.fromNullable(mails.filter(({ to }) => to.includes(address))[nth - 1])),
            60_000
          )
        )
    }
  })

let running: Promise<Mailbox> | undefined

/** Started by the first suite of a worker that asks for it, it ends with the worker. */
export const sharedMailbox: Effect.Effect<Mailbox> = Effect.promise(() => {
  running ??= makeMailbox().pipe(Scope.extend(Effect.runSync(Scope.make())), Effect.runPromise)
  return running
})

export class TestMailbox extends Context.Tag("test/Mailbox")<TestMailbox, Mailbox>() {
  static readonly layer = Layer.scoped(TestMailbox, makeMailbox())

  /** The worker's mail server, for suites that look at addresses of their own alone. */
  static readonly shared = Layer.effect(TestMailbox, sharedMailbox)
}
