import { createHash } from "node:crypto"
import { promisify } from "node:util"
import { brotliCompress, constants, gzip } from "node:zlib"
import { HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import { hasEntityTag } from "../../platform/kit/Request.ts"

type Coding = "br" | "gzip" | "identity"

/** A document that is the same for everybody and for the life of the process. */
export interface PublishedDocument {
  readonly body: string | Buffer
  /** With its charset, e.g. `text/html; charset=utf-8`. */
  readonly contentType: string
  readonly cacheControl: string
  readonly headers?: Readonly<Record<string, string>>
  /** The body by coding, if it was compressed beforehand. */
  readonly compressed?: Readonly<Record<Exclude<Coding, "identity">, Buffer>>
  /** `false` for a body that is compressed already, such as an archive. */
  readonly compress?: boolean
}

/**
 * Quick and good enough for text: a document is compressed once. Only documents without secrets are compressed:
 * otherwise an answer's size could reveal them (BREACH).
 */
const compress: Readonly<Record<Coding, (body: Buffer) => Promise<Buffer>>> = {
  br: (body) => promisify(brotliCompress)(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 6 } }),
  gzip: (body) => promisify(gzip)(body),
  identity: (body) => Promise.resolve(body)
}

const isRefused = (parameter: string): boolean => /^\s*q=0(?:\.0*)?\s*$/.test(parameter)

/** The best coding that a client accepts; `identity` unless it names one. */
const codingFor = (acceptEncoding: string): Coding => {
  const taken = new Set(
    acceptEncoding
      .toLowerCase()
      .split(",")
      .map((part) => part.split(";"))
      .filter(([, ...parameters]) => !parameters.some(isRefused))
      .map(([coding = ""]) => coding.trim())
  )
  return taken.has("br") ? "br" : taken.has("gzip") ? "gzip" : "identity"
}

/**
 * The handler that serves a document: compressed if the client accepts it, once for each coding, on the first request;
 * 304 without a body if the client already has it.
 */
export const publishedDocument = ({
  body,
  cacheControl,
  compress: compressible = true,
  compressed: beforehand,
  contentType,
  headers: further = {}
}: PublishedDocument): Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  never,
  HttpServerRequest.HttpServerRequest
> => {
  const bytes = typeof body === "string" ? Buffer.from(body) : body
  const hash = createHash("sha256").update(bytes).digest("base64url")
  const compressed = new Map<Coding, Promise<Buffer>>(
    beforehand === undefined
      ? []
      : [
          ["br", Promise.resolve(beforehand.br)],
          ["gzip", Promise.resolve(beforehand.gzip)]
        ]
  )
  const inCoding = (coding: Coding): Promise<Buffer> => {
    const made = compressed.get(coding) ?? compress[coding](bytes)
    compressed.set(coding, made)
    return made
  }
  return Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
    const coding = compressible ? codingFor(request.headers["accept-encoding"] ?? "") : "identity"
    // Each coding has different bytes, and so its own tag
    const etag = coding === "identity" ? `"${hash}"` : `"${hash}-${coding}"`
    const headers = {
      etag,
      "cache-control": cacheControl,
      vary: "accept-encoding",
      "x-content-type-options": "nosniff",
      ...further
    }
    return hasEntityTag(request.headers["if-none-match"], etag)
      ? Effect.succeed(HttpServerResponse.empty({ status: 304, headers }))
      : Effect.map(
          Effect.promise(() => inCoding(coding)),
          (encoded) =>
            HttpServerResponse.uint8Array(encoded, {
              contentType,
              headers: coding === "identity" ? headers : { ...headers, "content-encoding": coding }
            })
        )
  })
}
