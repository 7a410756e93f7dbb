import { Args, Command, HelpDoc } from "@effect/cli"
import { Effect, Layer, Option } from "effect"
import { imageStoreLayer } from "../images/ImageStoreLayer.ts"
import { fileOf, Images, nameOf } from "../images/Images.ts"
import { imagesPath } from "../images/ImageUrl.ts"
import { RateLimits } from "../kit/RateLimit.ts"
import { CommandFailed } from "./Failure.ts"
import { database, Installation } from "./Installation.ts"
import { operator } from "./Operator.ts"
import { jsonOption, show } from "./Output.ts"
import { described, type KnownCommand } from "./Synopsis.ts"

/**
 * `images remove`: removes product images that must no longer be shown, from the database or the bucket that holds
 * them.
 */

const images = Layer.unwrapEffect(
  Effect.map(Installation, ({ imageStore }) =>
    // The limits on uploads do not apply to removals
    Images.layer({ publicUrl: "", plainHttp: false, imageMegabytesPerHour: Number.MAX_SAFE_INTEGER }).pipe(
      Layer.provide([imageStoreLayer(Option.getOrUndefined(imageStore)), RateLimits.layer])
    )
  )
)

const services = images.pipe(Layer.provide(database), Layer.provide(Installation.layer))

/** The file name in a text that may be a whole URL. */
const fileIn = (text: string): string => text.slice(text.lastIndexOf("/") + 1)

const imageArgument = Args.text({ name: "image" }).pipe(
  Args.mapEffect((text) =>
    Option.match(nameOf(fileIn(text)), {
      onNone: () =>
        Effect.fail(HelpDoc.p(`Name the image by its URL (…${imagesPath}/<sha256>.jpg) or by the URL's last part.`)),
      onSome: Effect.succeed
    })
  ),
  Args.withDescription("The image's public URL, or its last part: <sha256>.<jpg|png|webp>")
)

const remove = described(
  Command.make("remove", { image: imageArgument, json: jsonOption }, ({ image, json }) =>
    Effect.gen(function* () {
      const images = yield* Images
      const file = fileOf(image)
      const removed = yield* images.remove(image, yield* operator)
      if (Option.isNone(removed)) {
        return yield* new CommandFailed({ message: `There is no image ${file}.` })
      }
      const { uploadedBy } = removed.value
      const owners = uploadedBy.map(({ environment, organizationId }) => `${organizationId} (${environment})`)
      yield* show(json, {
        json: { image: file, removed: true, uploadedBy },
        text: [
          `${file} is removed: its URL answers 404 from now on. Caches may still hold it; purge them by its URL.`,
          owners.length === 0 ? "No upload of this image is on record." : `It was uploaded by ${owners.join(", ")}.`
        ].join("\n")
      })
    })
  ).pipe(Command.provide(services)),
  {
    command: "images remove",
    summary: "Remove a product image for everyone; recorded in the audit log of each organization that uploaded it.",
    example: `${"0123456789abcdef".repeat(4)}.png`
  }
)

/** The command with its subcommand. */
export const imagesCommand = Command.make("images").pipe(
  Command.withDescription("Remove product images."),
  Command.withSubcommands([remove.command])
)

/** The command, for the help. */
export const imageCommands: ReadonlyArray<KnownCommand> = [remove.known]
