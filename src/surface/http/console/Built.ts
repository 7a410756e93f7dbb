import { mkdir, readFile, rm, writeFile } from "node:fs/promises"
import { brotliCompressSync, constants, gzipSync } from "node:zlib"
import { Schema } from "effect"
import type { Bundle } from "./Bundle.ts"

/** The built console of the package and the image: files named by their content, each compressed beforehand. */

export const BuiltList = Schema.parseJson(
  Schema.Struct({
    theme: Schema.String,
    script: Schema.String,
    imports: Schema.Array(Schema.String),
    style: Schema.String,
    files: Schema.Array(Schema.Struct({ name: Schema.String, contentType: Schema.String }))
  }),
  { space: 2 }
)
export type BuiltList = typeof BuiltList.Type

/** The codings in which each file is stored, with the ending of its name. */
const endings = { br: ".br", gzip: ".gz" } as const

/** The name of the file that lists the others. */
export const listName = "console.json"

const builtList = (folder: URL): URL => new URL(listName, folder)

const assets = (folder: URL): URL => new URL("assets/", folder)

export interface ServedFile {
  readonly name: string
  readonly contentType: string
  readonly body: Buffer
  /** Compressed beforehand; if absent, compressed on the first request. */
  readonly compressed?: Readonly<Record<"br" | "gzip", Buffer>>
}

export interface ServedConsole extends Pick<Bundle, "theme" | "script" | "imports" | "style"> {
  readonly files: ReadonlyArray<ServedFile>
}

/** Compresses with the maximum effort: this is done once per version. */
export const compressed = (body: Uint8Array): Readonly<Record<"br" | "gzip", Buffer>> => ({
  br: brotliCompressSync(body, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
      [constants.BROTLI_PARAM_SIZE_HINT]: body.byteLength
    }
  }),
  gzip: gzipSync(body, { level: constants.Z_BEST_COMPRESSION })
})

export const writeBuilt = async (bundle: Bundle, folder: URL): Promise<void> => {
  await rm(folder, { recursive: true, force: true })
  await mkdir(assets(folder), { recursive: true })
  for (const { body, name } of bundle.files) {
    const { br, gzip } = compressed(body)
    await writeFile(new URL(name, assets(folder)), body)
    await writeFile(new URL(`${name}${endings.br}`, assets(folder)), br)
    await writeFile(new URL(`${name}${endings.gzip}`, assets(folder)), gzip)
  }
  const { imports, script, style, theme } = bundle
  const files = bundle.files.map(({ contentType, name }) => ({ name, contentType }))
  await writeFile(builtList(folder), `${Schema.encodeSync(BuiltList)({ theme, script, imports, style, files })}\n`)
}

export const readBuilt = async (folder: URL): Promise<ServedConsole> => {
  const list = Schema.decodeUnknownSync(BuiltList)(await readFile(builtList(folder), "utf8"))
  const files = await Promise.all(
    list.files.map(async ({ contentType, name }): Promise<ServedFile> => {
      const file = new URL(name, assets(folder))
      const [body, br, gzip] = await Promise.all([
        readFile(file),
        readFile(new URL(`${file.href}${endings.br}`)),
        readFile(new URL(`${file.href}${endings.gzip}`))
      ])
      return { name, contentType, body, compressed: { br, gzip } }
    })
  )
  return { ...list, files }
}

export const maxFirstPageBytes = 120_000

/** The most frequent first pages of a visit: the sign-in and the overview. */
const firstPages = ["pages/sign-in/SignIn.tsx", "pages/overview/Overview.tsx"]

/** The larger of the first pages: the scripts that it loads, and their size with Brotli. */
export const firstPageSize = ({
  files,
  imports,
  pages,
  script,
  theme
}: Bundle): { readonly page: string; readonly scripts: ReadonlyArray<string>; readonly bytes: number } => {
  const sizes = new Map(files.map(({ body, name }) => [name, compressed(body).br.byteLength]))
  const measured = firstPages.map((page) => {
    const scripts = [...new Set([theme, script, ...imports, ...(pages[page] ?? [])])]
    return { page, scripts, bytes: scripts.reduce((sum, name) => sum + (sizes.get(name) ?? 0), 0) }
  })
  return measured.reduce((largest, one) => (one.bytes > largest.bytes ? one : largest))
}
