import { chmod, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { packageRoot } from "../../platform/settings/PackageFolders.ts"
import { bundlePrograms, licencesOf } from "../../surface/packages/ProgramBundles.ts"

/** Bundles the service and the command line into `dist`, for the package and the image: a part of `npm run build`. */

const directory = fileURLToPath(new URL("dist/", packageRoot))
const programs = ["src/app/main.ts", "src/app/cli/main.ts"]

await rm(join(directory, "chunks"), { recursive: true, force: true })
const packages = await bundlePrograms({ programs, base: "src", directory, chunks: "chunks" })
await writeFile(join(directory, "third-party-licences.txt"), await licencesOf(packages))
await chmod(join(directory, "app/cli/main.js"), 0o755)
process.stdout.write(`The programs: bundled with ${packages.length} packages\n`)
