import type { HttpServerRequest } from "@effect/platform"
import { Effect } from "effect"
import { fieldName, refusal } from "../../platform/bounds/Refusals.ts"
import { PayloadTooLarge, type UnsupportedMediaType, ValidationFailed } from "../../platform/errors/Errors.ts"
import { readBytes, type UnreadableRequest } from "../../server/Body.ts"

/** The image of an upload: the body itself, or the one part of a form. */

export const maxImageBytes = 4 * 1024 * 1024

const maxFormOverhead = 16 * 1024

/** How many times a form may contain its boundary; one image needs two. */
const maxBoundaries = 20

const filePart = "file"

const partReason = (name: string): string =>
  name === filePart ? "must be one part of the form, with the image as its file" : "is not a known part"

const unreadable = () =>
  new ValidationFailed({ fields: [filePart], message: "The form could not be read; send the image as its part file." })

/** The boundary of a form, if it needs no escaping in quotes; undefined otherwise, or if there is none. */
const boundaryOf = (contentType: string): string | undefined => {
  const [, quoted, plain] =
    /;\s*boundary=(?:"([!#-[\]-~ ]{1,70})"|([!#-:<-[\]-~]{1,70}))\s*(?:;|$)/i.exec(contentType) ?? []
  return quoted ?? plain
}

/** A parser creates an object for each part, and 4 MiB have room for 65,000. */
const isSmall = (body: Buffer, boundary: string): boolean => {
  const delimiter = Buffer.from(`--${boundary}`, "latin1")
  let found = 0
  for (let at = body.indexOf(delimiter); at !== -1; at = body.indexOf(delimiter, at + delimiter.length)) {
    found += 1
    const start = at + delimiter.length
    const head = body.subarray(start, start + maxFormOverhead)
    const ends = head.toString("latin1", 0, 2) === "--" || head.includes("\r\n\r\n") || head.length < maxFormOverhead
    if (found > maxBoundaries || !ends) return false
  }
  return true
}

/** The image of a form; it must be the form's only part. */
const fromForm = (body: Buffer, contentType: string): Effect.Effect<Uint8Array, ValidationFailed | PayloadTooLarge> =>
  Effect.gen(function* () {
    const boundary = boundaryOf(contentType)
    if (boundary === undefined || !isSmall(body, boundary)) {
      return yield* unreadable()
    }
    const form = yield* Effect.tryPromise({
      // With the counted boundary, ignoring all other parameters of the sender's type
      try: () =>
        new Response(new Uint8Array(body), {
          headers: { "content-type": `multipart/form-data; boundary="${boundary}"` }
        }).formData(),
      catch: unreadable
    })
    const file = form.get(filePart)
    const refused = [...new Set(form.keys())].filter((name) => name !== filePart)
    if (!(file instanceof File) || form.getAll(filePart).length > 1) {
      refused.push(filePart)
    }
    if (!(file instanceof File) || refused.length > 0) {
      return yield* new ValidationFailed(refusal(new Map(refused.map((name) => [fieldName([name]), partReason(name)]))))
    }
    if (file.size > maxImageBytes) {
      return yield* new PayloadTooLarge({ message: `The image is larger than ${maxImageBytes} bytes.` })
    }
    return new Uint8Array(yield* Effect.promise(() => file.arrayBuffer()))
  })

/** The declared size of an upload; the maximum if it is missing or larger. */
export const declaredBytes = ({ headers }: HttpServerRequest.HttpServerRequest): number => {
  const declared = headers["content-length"] ?? ""
  return /^\d{1,15}$/.test(declared) ? Math.min(Number(declared), maxImageBytes) : maxImageBytes
}

/**
 * Reads an upload, bounded as it streams in. The declared type of the image is ignored: its bytes decide.
 *
 * Errors: `payload_too_large` over 4 MiB; `validation_failed` with `file`, or with the unexpected parts of a
 * form.
 */
export const readUpload = (
  request: HttpServerRequest.HttpServerRequest
): Effect.Effect<Uint8Array, UnreadableRequest | UnsupportedMediaType> => {
  const contentType = request.headers["content-type"] ?? ""
  const isForm = /^multipart\/form-data\s*;/i.test(contentType)
  return readBytes(request, isForm ? maxImageBytes + maxFormOverhead : maxImageBytes).pipe(
    // If the sender is gone there is nobody to answer: the edge ends the request
    Effect.catchTag("RequestError", Effect.die),
    Effect.flatMap((body) => (isForm ? fromForm(body, contentType) : Effect.succeed(body)))
  )
}
