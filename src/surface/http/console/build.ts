import { packageRoot } from "../../../platform/settings/PackageFolders.ts"
import { compressed, firstPageSize, writeBuilt } from "./Built.ts"
import { bundle } from "./Bundle.ts"

/** Builds the console into `dist`, for the package and the image, and reports its sizes: a part of `npm run build`. */

const sources = new URL("src/console/", packageRoot)
const target = new URL("dist/console/", packageRoot)

const made = await bundle(sources)
await writeBuilt(made, target)

const kilobytes = (bytes: number): string => `${(bytes / 1000).toFixed(1)} kB`
const all = made.files.reduce((sum, { body }) => sum + compressed(body).br.byteLength, 0)
process.stdout.write(
  `The console: ${made.files.length} files, ${kilobytes(all)} compressed; ` +
    `scripts of the first page: ${kilobytes(firstPageSize(made).bytes)}\n`
)
