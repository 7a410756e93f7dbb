import { Effect, Layer, Option, Schema } from "effect"
import { imageStoreLayer } from "../../../payments/images/ImageStoreLayer.ts"
import { Images, nameOf } from "../../../payments/images/Images.ts"
import { imagesPath } from "../../../payments/images/ImageUrl.ts"
import { RateLimits } from "../../../platform/kit/RateLimit.ts"
import { type Command, command, form } from "../Command.ts"
import { CommandFailed } from "../Failure.ts"
import { database, Installation, operator } from "../Installation.ts"

/** `images remove`: removes product images that must no longer be shown. */

const images = Layer.unwrapEffect(
  Effect.map(Installation, ({ settings: { imageStore } }) =>
    // The limits on uploads do not apply to removals
    Images.layer({ publicUrl: "", plainHttp: false, imageMegabytesPerHour: Number.MAX_SAFE_INTEGER }).pipe(
      Layer.provide([imageStoreLayer(Option.getOrUndefined(imageStore)), RateLimits.layer])
    )
  )
)

const fileIn = (text: string): string => text.slice(text.lastIndexOf("/") + 1)

const imageForm = Schema.String.pipe(Schema.filter((text) => Option.isSome(nameOf(fileIn(text)))))

export const imageCommands: ReadonlyArray<Command> = [
  command({
    name: "images remove",
    summary: "Remove a product image for everyone; recorded in the audit log of each organization that uploaded it.",
    example: `${"0123456789abcdef".repeat(4)}.png`,
    argument: "image",
    input: Schema.Struct({
      image: form(
        imageForm,
        "<image>",
        "The image's public URL, or its last part: <sha256>.<jpg|png|webp>",
        `Name the image by its URL (…${imagesPath}/<sha256>.jpg) or by the URL's last part.`
      )
    }),
    services: Layer.provide(images, database),
    run: Effect.fnUntraced(function* ({ image }) {
      const images = yield* Images
      const file = fileIn(image)
      const author = yield* operator
      const removed = yield* Effect.transposeMapOption(nameOf(file), (name) => images.remove(name, author))
      const uploads = Option.flatten(removed)
      if (Option.isNone(uploads)) {
        return yield* new CommandFailed({ message: `There is no image ${file}.` })
      }
      const { uploadedBy } = uploads.value
      const owners = uploadedBy.map(({ environment, organizationId }) => `${organizationId} (${environment})`)
      return {
        json: { image: file, removed: true, uploadedBy },
        text: [
          `${file} is removed: its URL answers 404 from now on. Caches may still hold it; purge them by its URL.`,
          owners.length === 0 ? "No upload of this image is on record." : `It was uploaded by ${owners.join(", ")}.`
        ].join("\n")
      }
    })
  })
]
