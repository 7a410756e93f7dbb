import { AwsClient } from "aws4fetch"
import { Data, type Duration, Effect, Layer, Option, Redacted, Stream } from "effect"
import { ServiceUnavailable } from "../../platform/errors/Errors.ts"
import { serverAttributes } from "../../platform/kit/UrlServer.ts"
import type { ImageStoreSettings } from "../../platform/settings/Settings.ts"
import { annotateSpan } from "../../platform/telemetry/Spans.ts"
import { contentTypes } from "./ImageFormat.ts"
import { type ImageName, ImageStore } from "./ImageStore.ts"

export interface S3ImageStoreOptions extends ImageStoreSettings {
  /** The longest wait for an answer to begin, and for each piece of it. Default 10 s. */
  readonly timeout?: Duration.DurationInput
}

const timeoutOf = ({ timeout = "10 seconds" }: S3ImageStoreOptions) => timeout

/** An unexpected answer from the store. For operators. */
class UnexpectedAnswer extends Data.TaggedError("UnexpectedAnswer")<{
  readonly method: string
  readonly status: number
}> {}

type Method = "GET" | "HEAD" | "PUT" | "DELETE"

/** Each answer's body is read on demand, until the scope closes; none if there is no such object. */
const makeSend = (options: S3ImageStoreOptions) => {
  const client = new AwsClient({
    accessKeyId: options.accessKeyId,
    secretAccessKey: Redacted.value(options.secretAccessKey),
    region: options.region,
    service: "s3",
    // Every request is idempotent: an image is written under its own hash
    retries: 2
  })
  const base = options.url.href.replace(/\/+$/, "")
  const server = serverAttributes(options.url)

  return (method: Method, { format, sha256 }: ImageName, bytes?: Uint8Array) =>
    Effect.gen(function* () {
      const { signal } = yield* Effect.acquireRelease(
        Effect.sync(() => new AbortController()),
        // Otherwise its connection would be kept for a body that nobody reads
        (controller) => Effect.sync(() => controller.abort())
      )
      const response = yield* Effect.tryPromise(() =>
        client.fetch(`${base}/product-images/${sha256}.${format}`, {
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
      )
      yield* annotateSpan({
        "http.response.status_code": response.status,
        ...(response.status < 400 ? {} : { "error.type": String(response.status) })
      })
      if (response.status === 404 && method !== "PUT") return Option.none()
      return response.status === 200 || (response.status === 204 && method === "DELETE")
        ? Option.some(response)
        : yield* new UnexpectedAnswer({ method, status: response.status })
    }).pipe(
      Effect.timeout(timeoutOf(options)),
      Effect.mapError((cause) => new ServiceUnavailable({ cause })),
      Effect.withSpan(`image store ${method}`, {
        kind: "client",
        attributes: { "http.request.method": method, ...server }
      })
    )
}

const sizeOf = (response: Response): Effect.Effect<number, ServiceUnavailable> => {
  const length = response.headers.get("content-length") ?? ""
  return /^\d+$/.test(length)
    ? Effect.succeed(Number(length))
    : new ServiceUnavailable({ cause: "The image store answered without a length" })
}

const makeStore = (options: S3ImageStoreOptions): ImageStore["Type"] => {
  const send = makeSend(options)
  return {
    transactional: false,
    put: (name, bytes) =>
      Effect.flatMap(Effect.scoped(send("HEAD", name)), (known) =>
        Option.isSome(known) ? Effect.void : Effect.scoped(send("PUT", name, bytes))
      ),
    // The store's answer to a deletion is the same if there was nothing to delete
    remove: (name) =>
      Effect.flatMap(Effect.scoped(send("HEAD", name)), (known) =>
        Option.isSome(known) ? Effect.as(Effect.scoped(send("DELETE", name)), true) : Effect.succeed(false)
      ),
    size: (name) => Effect.scoped(Effect.flatMap(send("HEAD", name), Effect.transposeMapOption(sizeOf))),
    open: (name) =>
      Effect.flatMap(
        send("GET", name),
        Effect.transposeMapOption((response) =>
          Effect.map(sizeOf(response), (size) => ({ size, bytes: bytesOf(response, timeoutOf(options)) }))
        )
      )
  }
}

/** A body as it arrives; each piece within `timeout`. */
const bytesOf = ({ body }: Response, timeout: Duration.DurationInput): Stream.Stream<Uint8Array, ServiceUnavailable> =>
  body === null
    ? Stream.empty
    : Stream.fromReadableStream({
        evaluate: () => body,
        onError: (cause) => new ServiceUnavailable({ cause })
      }).pipe(
        Stream.timeoutFail(() => new ServiceUnavailable({ cause: "The image store stopped in the middle" }), timeout)
      )

/** Keeps images in a bucket of an S3-compatible store, as `<url>/product-images/<sha256>.<ext>`. */
export const s3ImageStoreLayer = (options: S3ImageStoreOptions): Layer.Layer<ImageStore> =>
  Layer.sync(ImageStore, () => makeStore(options))
