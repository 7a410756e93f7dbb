import { createHash } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Duration, Effect, Option } from "effect"
import { ImageQuotaExceeded, UnsupportedMediaType } from "../../platform/errors/Errors.ts"
import { type AuditAction, makeAudit } from "../../platform/kit/Audit.ts"
import { RateLimits } from "../../platform/kit/RateLimit.ts"
import { serviceWith } from "../../platform/kit/Service.ts"
import type { Author, Tenant } from "../../platform/kit/Tenant.ts"
import { orUnavailable, transaction } from "../../platform/storage/Database.ts"
import { readImageHeader } from "./ImageFormat.ts"
import { type ImageName, ImageStore } from "./ImageStore.ts"
import { makeImagesRepo } from "./ImagesRepo.ts"
import { imagesPath, isOwnImage } from "./ImageUrl.ts"

export const fileOf = ({ format, sha256 }: ImageName): string => `${sha256}.${format}`

export const nameOf = (file: string): Option.Option<ImageName> => {
  const [, sha256, extension] = /^([0-9a-f]{64})\.(\w+)$/.exec(file) ?? []
  return sha256 !== undefined && (extension === "jpg" || extension === "png" || extension === "webp")
    ? Option.some({ sha256, format: extension })
    : Option.none()
}

export interface Uploading extends Tenant {
  readonly author: Author
}

export interface ImagesOptions {
  /** The public URL of the service, without a trailing slash. */
  readonly publicUrl: string
  /** Whether `isOwn` accepts http URLs: for a local start, which has only those. */
  readonly plainHttp: boolean
  /** A tenant's upload quota per hour, in megabytes (a million bytes); at least one image's 4 MiB. */
  readonly imageMegabytesPerHour: number
}

const makeAdmit = ({ imageMegabytesPerHour: megabytes }: ImagesOptions) =>
  Effect.map(RateLimits, (limits) => {
    const quota = { limit: megabytes * 1_000_000, per: Duration.hours(1) }
    return ({ environment, organizationId }: Tenant, bytes: number) =>
      Effect.catchTag(
        limits.take(`image-bytes:${organizationId}:${environment}`, quota, bytes),
        "BucketEmpty",
        ({ retryAfter }) =>
          new ImageQuotaExceeded({
            message: `An organization uploads at most ${megabytes} MB of images in an hour; wait as long as Retry-After says.`,
            retryAfter
          })
      )
  })

const make = Effect.fnUntraced(function* (options: ImagesOptions) {
  const images = yield* ImageStore
  const sql = yield* SqlClient.SqlClient
  const repo = yield* makeImagesRepo
  const audit = yield* makeAudit

  const record = (tenant: Tenant, author: Author, action: AuditAction, file: string) =>
    audit({ ...tenant, author, action, targetId: file })

  const recordUpload = (file: string, { author, environment, organizationId }: Uploading) => {
    const tenant = { organizationId, environment }
    return Effect.zipRight(repo.recordUpload(file, tenant), record(tenant, author, "product_image.uploaded", file))
  }

  /**
   * Stores an image under the hash of its bytes; the same bytes are stored once. Refuses bytes that are not a JPEG,
   * PNG or WebP, regardless of the declared type. Audited: in the same transaction if the store is the database,
   * otherwise after the image is stored.
   */
  const store = Effect.fn("Images.store")(function* (bytes: Uint8Array, uploading: Uploading) {
    const header = readImageHeader(bytes)
    if (Option.isNone(header)) {
      return yield* new UnsupportedMediaType({ message: "The image must be a whole JPEG, PNG or WebP file." })
    }
    const name = { sha256: createHash("sha256").update(bytes).digest("hex"), format: header.value.format }
    const recorded = recordUpload(fileOf(name), uploading)
    yield* images.transactional
      ? transaction(sql)(Effect.zipRight(images.put(name, bytes), recorded))
      : Effect.zipRight(images.put(name, bytes), transaction(sql)(recorded))
    return { name, url: `${options.publicUrl}${imagesPath}/${fileOf(name)}` }
  }, orUnavailable)

  /** Forgets an image's uploads, which may be of several tenants. Run it in a transaction. */
  const forget = (file: string, author: Author) =>
    Effect.tap(repo.forgetUploads(file), (uploadedBy) =>
      Effect.forEach(uploadedBy, (tenant) => record(tenant, author, "product_image.removed", file))
    )

  /** For everybody who uploaded it; the same bytes may be uploaded again. */
  const remove = Effect.fn("Images.remove")(function* (name: ImageName, author: Author) {
    const forgotten = forget(fileOf(name), author)
    // If the process ends between the two, the upload is still on record, and the removal can be repeated
    const [existed, uploadedBy] = yield* images.transactional
      ? transaction(sql)(Effect.all([images.remove(name), forgotten]))
      : Effect.all([images.remove(name), transaction(sql)(forgotten)])
    return existed || uploadedBy.length > 0 ? Option.some({ uploadedBy }) : Option.none()
  }, orUnavailable)

  return {
    /** Takes the bytes of the tenant's quota, across all processes. Before the upload is read: a refusal costs nothing. */
    admit: yield* makeAdmit(options),
    store,
    size: Effect.fn("Images.size")(images.size),
    /** Opens an image for as long as the scope is open; none if there is no such image. */
    open: Effect.fn("Images.open")(images.open),
    remove,
    /** Whether a URL has the form that `store` returns; does not check that the image exists. */
    isOwn: isOwnImage(options)
  }
})

/** Product images, hosted by the service, since the provider's files have no purpose that fits them (contract 4.10). */
export class Images extends serviceWith<Images>()("connected-payments/images/Images", make) {}
