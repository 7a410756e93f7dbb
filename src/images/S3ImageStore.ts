import { AwsClient } from "aws4fetch"
import { Data, type Duration, Effect, Layer, Option, Redacted } from "effect"
import { ServiceUnavailable } from "../Errors.ts"
import { annotateSpan } from "../kit/Spans.ts"
import type { ImageStoreSettings } from "../Settings.ts"
import { contentTypes } from "./ImageFormat.ts"
import { type ImageName, ImageStore } from "./ImageStore.ts"

/** A bucket, and how long to wait for it. */
export interface S3ImageStoreOptions extends ImageStoreSettings {
  /** For one request, its body included. Default 10 s. */
  readonly timeout?: Duration.DurationInput
}

/** What the store answered in place of what was asked. For operators. */
class UnexpectedAnswer extends Data.TaggedError("UnexpectedAnswer")<{
  readonly method: string
  readonly status: number
}> {}

type Method = "GET" | "HEAD" | "PUT"

const makeStore = (options: S3ImageStoreOptions): ImageStore["Type"] => {
  const client = new AwsClient({
    accessKeyId: options.accessKeyId,
    secretAccessKey: Redacted.value(options.secretAccessKey),
    region: options.region,
    service: "s3",
    // Every request may be repeated: an image is written under its own hash
    retries: 2
  })
  const base = options.url.href.replace(/\/+$/, "")
  const { hostname, port, protocol } = options.url
  const server = {
    "server.address": hostname,
    "server.port": port === "" ? (protocol === "https:" ? 443 : 80) : Number(port)
  }
  const timeout = options.timeout ?? "10 seconds"

  /** The body of an answer; none where there is no such object. */
  const send = (method: Method, { format, sha256 }: ImageName, bytes?: Uint8Array) =>
    Effect.tryPromise(async (signal) => {
      const response = await client.fetch(`${base}/product-images/${sha256}.${format}`, {
        method,
        signal,
        ...(bytes === undefined
          ? {}
          : {
              body: new Uint8Array(bytes),
              // The hash is signed: the store refuses other bytes
              headers: { "content-type": contentTypes[format], "x-amz-content-sha256": sha256 }
            })
      })
      return { status: response.status, body: new Uint8Array(await response.arrayBuffer()) }
    }).pipe(
      Effect.tap(({ status }) =>
        annotateSpan({
          "http.response.status_code": status,
          ...(status < 400 ? {} : { "error.type": String(status) })
        })
      ),
      Effect.flatMap(({ body, status }) => {
        if (status === 404 && method !== "PUT") {
          return Effect.succeedNone
        }
        return status === 200 ? Effect.succeedSome(body) : new UnexpectedAnswer({ method, status })
      }),
      Effect.timeout(timeout),
      Effect.mapError((cause) => new ServiceUnavailable({ cause })),
      Effect.withSpan(`image store ${method}`, {
        kind: "client",
        attributes: { "http.request.method": method, ...server }
      })
    )

  return {
    put: (name, bytes) =>
      Effect.flatMap(send("HEAD", name), (known) =>
        Option.isSome(known) ? Effect.void : Effect.asVoid(send("PUT", name, bytes))
      ),
    get: (name) => send("GET", name)
  }
}

/** Keeps images in a bucket of an S3-compatible store, as `<url>/product-images/<sha256>.<ext>`. */
export const s3ImageStoreLayer = (options: S3ImageStoreOptions): Layer.Layer<ImageStore> =>
  Layer.sync(ImageStore, () => makeStore(options))
