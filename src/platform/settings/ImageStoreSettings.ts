import { Either, Option, type Redacted } from "effect"
import { httpUrl, secret, text, validated } from "./Forms.ts"
import { combined, type Documented, group, optional, type Setting, setting } from "./Setting.ts"

/** The bucket of an S3-compatible store that product images are kept in. */
export interface ImageStoreSettings {
  /** The bucket, with a prefix of the keys if there is one: `https://s3.eu-central-1.amazonaws.com/bucket/shop`. */
  readonly url: URL
  readonly region: string
  readonly accessKeyId: string
  readonly secretAccessKey: Redacted.Redacted
}

const url = optional(
  "IMAGE_STORE_URL",
  validated(httpUrl, "must be a bucket's URL without credentials or a query", ({ hash, password, search, username }) =>
    [username, password, search, hash].every((part) => part === "")
  ),
  {
    unset: "the database",
    about:
      "a bucket of an S3-compatible store for product images, such as `https://s3.eu-central-1.amazonaws.com/bucket`; set together with the two keys below"
  }
)

const accessKeyId = optional("IMAGE_STORE_ACCESS_KEY_ID", text, {
  unset: "none",
  about:
    "the key for the bucket: it must be allowed to list the bucket, or a missing image looks like a refusal, and to delete objects, for `images remove`"
})

const secretAccessKey = optional(
  "IMAGE_STORE_SECRET_ACCESS_KEY",
  secret("must not be empty, nor have spaces or line breaks in it or quotes around it", (key) =>
    /^(?!["'])\S+(?<!["'])$/.test(key)
  ),
  { unset: "none", about: "the secret of that key" }
)

const region = setting("IMAGE_STORE_REGION", text, { default: "us-east-1", about: "the region of the bucket" })

/** The store of product images: its URL and both parts of its key, or none of the three. */
export const imageStore: Documented<Option.Option<ImageStoreSettings>> = combined(
  group({ url, accessKeyId, secretAccessKey, region }),
  (given) => {
    const parts: ReadonlyArray<readonly [Setting<unknown>, Option.Option<unknown>]> = [
      [url, given.url],
      [accessKeyId, given.accessKeyId],
      [secretAccessKey, given.secretAccessKey]
    ]
    const [first, ...others] = parts.flatMap(([{ row }, value]) => (Option.isNone(value) ? [row] : []))
    // A part without the others is a mistake, never "keep them in the database"
    return first !== undefined && others.length < parts.length - 1
      ? Either.left({ of: first, message: "is required if its counterparts are set" })
      : Either.right(
          Option.map(
            Option.all({ url: given.url, accessKeyId: given.accessKeyId, secretAccessKey: given.secretAccessKey }),
            (complete) => ({ ...complete, region: given.region })
          )
        )
  }
)
