import { createHash } from "node:crypto"
import { createServer, type IncomingMessage } from "node:http"
import pg from "pg"
import { v7 } from "uuid"
import type { Recording } from "./Inbound.ts"
import { paymentOf } from "./Notification.ts"

/**
 * The least that stores a notification: `node:http`, `pg` and the very statements that the service was seen to send for
 * one, with this notification's ids in the place of that one's. No signature, no translation, no filters, no spans.
 *
 * Argument, as JSON: a `Recording`.
 */

// Written by the bench that starts this process, in this form
const recording: Recording = JSON.parse(process.argv[2] ?? "")

const pool = new pg.Pool({
  connectionString: process.env["DATABASE_URL"],
  max: Number(process.env["DATABASE_POOL_SIZE"])
})

/** A value as parts of text with ids between them. */
interface Template {
  readonly texts: ReadonlyArray<string>
  readonly ids: ReadonlyArray<string>
}

const knownIds = [recording.paymentId, recording.providerEventId, ...recording.eventIds, ...recording.deliveryIds]
const anyId = new RegExp(knownIds.join("|"), "g")

const templateOf = (value: string | null): Template | null =>
  value === null ? null : { texts: value.split(anyId), ids: value.match(anyId) ?? [] }

const statements = recording.statements.map(({ text, values }) => ({
  text,
  name: createHash("sha1").update(text).digest("base64url"),
  values: values?.map(templateOf) ?? null
}))

const inTransaction = statements.some(({ text }) => /^begin/i.test(text))

const fill = ({ ids, texts }: Template, own: ReadonlyMap<string, string>): string =>
  texts.map((text, index) => text + (own.get(ids[index] ?? "") ?? "")).join("")

/** This notification's own ids, by those of the recorded one. */
const idsOf = (providerEventId: string): ReadonlyMap<string, string> =>
  new Map([
    [recording.providerEventId, providerEventId],
    [recording.paymentId, paymentOf(providerEventId)],
    ...recording.eventIds.map(
      (id, index) =>
        [id, `svc_evt_${createHash("sha256").update(`${providerEventId}\n${index}`).digest("hex")}`] as const
    ),
    ...recording.deliveryIds.map((id) => [id, v7()] as const)
  ])

const store = async (providerEventId: string): Promise<void> => {
  const own = idsOf(providerEventId)
  const client = inTransaction ? await pool.connect() : undefined
  const connection = client ?? pool
  try {
    for (const { name, text, values } of statements) {
      await (values === null
        ? connection.query(text)
        : connection.query({ name, text, values: values.map((value) => (value === null ? null : fill(value, own))) }))
    }
  } finally {
    client?.release()
  }
}

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const answer = '{"received":true}'

const server = createServer((request, response) => {
  bodyOf(request)
    .then((body) => store(JSON.parse(body).id))
    .then(
      () =>
        response
          .writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(answer) })
          .end(answer),
      (error: unknown) => {
        const text = String(error)
        response.writeHead(500, { "content-length": Buffer.byteLength(text) }).end(text)
      }
    )
})

server.listen(0, "127.0.0.1", () => {
  const address = server.address()
  process.stdout.write(`http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}\n`)
})
