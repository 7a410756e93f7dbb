import { createHash, createHmac, timingSafeEqual } from "node:crypto"
import { createServer, type IncomingMessage } from "node:http"
import { Effect, type Scope } from "effect"
import { listening } from "../../harness/Listening.ts"

/**
 * An S3-compatible store of one bucket, in memory: path-style objects, `GET`, `HEAD`, `PUT` and `DELETE`, every request's
 * Signature Version 4 and body hash checked as the documents of Amazon S3 describe them.
 */
export interface ObjectStorage {
  readonly url: URL
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string; readonly region: string }
  readonly objects: ReadonlyMap<string, { readonly contentType: string; readonly bytes: Uint8Array }>
  readonly answers: ReadonlyArray<string>
  /** From now on every request is answered with this status; undefined: as it should be. */
  readonly fail: (status: number | undefined) => void
}

const credentials = {
  accessKeyId: "AKIDEXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
  region: "eu-central-1"
}

const sha256 = (data: string | Uint8Array) => createHash("sha256").update(data).digest("hex")
const hmac = (key: string | Buffer, data: string) => createHmac("sha256", key).update(data).digest()

const header = (request: IncomingMessage, name: string): string => {
  const value = request.headers[name]
  return (Array.isArray(value) ? value.join(",") : (value ?? "")).trim()
}

/** Whether a request carries the signature that the bucket's owner would give it. */
const isSigned = (request: IncomingMessage, body: Uint8Array): boolean => {
  const match =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})$/.exec(
      header(request, "authorization")
    )
  const [, id, day = "", region = "", signed = "", signature = ""] = match ?? []
  const time = header(request, "x-amz-date")
  const payload = header(request, "x-amz-content-sha256")
  const names = signed.split(";")
  const sent = Date.parse(time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"))
  if (
    id !== credentials.accessKeyId ||
    region !== credentials.region ||
    !time.startsWith(day) ||
    !(Math.abs(Date.now() - sent) < 15 * 60_000) ||
    !["host", "x-amz-content-sha256", "x-amz-date"].every((name) => names.includes(name)) ||
    (payload !== "UNSIGNED-PAYLOAD" && payload !== sha256(body))
  ) {
    return false
  }
  const canonical = [
    request.method,
    request.url,
    "",
    ...names.map((name) => `${name}:${header(request, name)}`),
    "",
    signed,
    payload
  ].join("\n")
  const scope = `${day}/${region}/s3/aws4_request`
  const key = [region, "s3", "aws4_request"].reduce(hmac, hmac(`AWS4${credentials.secretAccessKey}`, day))
  const expected = hmac(key, ["AWS4-HMAC-SHA256", time, scope, sha256(canonical)].join("\n"))
  return timingSafeEqual(expected, Buffer.from(signature, "hex"))
}

export const makeObjectStorage: Effect.Effect<ObjectStorage, never, Scope.Scope> = Effect.gen(function* () {
  const objects = new Map<string, { readonly contentType: string; readonly bytes: Uint8Array }>()
  const answers: Array<string> = []
  let failure: number | undefined
  const bucket = "/pictures/"
  const answerTo = (request: IncomingMessage, body: Uint8Array): readonly [status: number, body?: Uint8Array] => {
    const key = (request.url ?? "").slice(bucket.length)
    if (failure !== undefined) return [failure]
    if (!isSigned(request, body)) return [403]
    if (request.method === "PUT") {
      objects.set(key, { contentType: header(request, "content-type"), bytes: body })
      return [200]
    }
    if (request.method === "DELETE") {
      objects.delete(key)
      return [204]
    }
    const found = objects.get(key)
    return found === undefined ? [404] : [200, found.bytes]
  }
  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      const [status, bytes] = answerTo(request, new Uint8Array(Buffer.concat(chunks)))
      answers.push(`${request.method} ${status}`)
      response
        .writeHead(status, bytes === undefined ? {} : { "content-length": bytes.length })
        .end(request.method === "HEAD" ? undefined : bytes)
    })
  })
  const port = yield* listening(server)
  return {
    url: new URL(`http://127.0.0.1:${port}${bucket}shop`),
    credentials,
    objects,
    answers,
    fail: (status) => {
      failure = status
    }
  } satisfies ObjectStorage
})
