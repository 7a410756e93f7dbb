import { createHash } from "node:crypto"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { HttpApiBuilder, HttpRouter } from "@effect/platform"
import { Effect, Layer, Struct } from "effect"
import { ResourceNotFound } from "../../platform/errors/Errors.ts"
import { cachedForever } from "../../platform/kit/Concurrency.ts"
import { codeFolder } from "../../platform/settings/PackageFolders.ts"
import { version } from "../../platform/settings/Version.ts"
import { prepared } from "../docs/Prepared.ts"
import { publishedDocument } from "../docs/PublishedDocument.ts"
import { archiveName, archivePath, type PackageName, packageSummaries, packagesPath } from "./Paths.ts"

/** Serves the packages for `npm install {PUBLIC_URL}/packages/…`, and the list of them. Everybody may read them. */

interface Archive {
  readonly name: PackageName
  readonly body: Buffer
}

const read = (folder: string): Promise<ReadonlyArray<Archive>> =>
  Promise.all(
    Struct.keys(packageSummaries).map(async (name) => ({ name, body: await readFile(join(folder, archiveName(name))) }))
  )

const packed = async (): Promise<ReadonlyArray<Archive>> => {
  // npm and the bundler are loaded only if the service runs from its sources
  const { packPackages } = await import("./Pack.ts")
  const folder = await mkdtemp(join(tmpdir(), "connected-payments-archives-"))
  try {
    await packPackages(folder)
    return await read(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const digestOf = (body: Buffer): string => createHash("sha512").update(body).digest("base64")

const cacheControl = "public, max-age=3600"

const answersOf = (archives: ReadonlyArray<Archive>, publicUrl: string) => ({
  list: publishedDocument({
    body: `${JSON.stringify(
      {
        packages: archives.map(({ body, name }) => ({
          name,
          version,
          summary: packageSummaries[name],
          url: `${publicUrl}${archivePath(name)}`,
          integrity: `sha512-${digestOf(body)}`,
          size: body.byteLength
        }))
      },
      undefined,
      2
    )}\n`,
    contentType: "application/json",
    cacheControl
  }),
  files: new Map(
    archives.map(({ body, name }) => {
      const headers = { "repr-digest": `sha-512=:${digestOf(body)}:` }
      return [
        archiveName(name),
        publishedDocument({ body, contentType: "application/gzip", cacheControl, headers, compress: false })
      ] as const
    })
  )
})

/** @param publicUrl the service's public URL, which the list's addresses begin with */
export const packagePages = ({ publicUrl }: { readonly publicUrl: string }) => {
  const found = prepared({
    what: "The packages",
    built: "packages/",
    read: () => read(fileURLToPath(new URL("packages/", codeFolder))),
    source: "webhooks/tsconfig.json",
    make: packed
  })
  if (found === undefined) return Layer.empty
  return HttpApiBuilder.Router.use((router) =>
    Effect.gen(function* () {
      const answers = yield* cachedForever(Effect.map(found, (archives) => answersOf(archives, publicUrl)))
      yield* router.get(
        packagesPath,
        Effect.flatMap(answers, ({ list }) => list)
      )
      yield* router.get(
        `${packagesPath}/:file`,
        Effect.gen(function* () {
          const { params } = yield* HttpRouter.RouteContext
          const { files } = yield* answers
          return yield* files.get(params["file"] ?? "") ??
            new ResourceNotFound({
              message: `There is no such package. This service has ${[...files.keys()].join(", ")}: see ${publicUrl}${packagesPath}.`
            })
        })
      )
    })
  )
}
