import { fileURLToPath } from "node:url"
import { packageRoot } from "../../platform/settings/PackageFolders.ts"
import { packPackages } from "./Pack.ts"

/** Packs what developers install from a running service into `dist`: a part of `npm run build`. */

await packPackages(fileURLToPath(new URL("dist/packages/", packageRoot)))
process.stdout.write("The packages for developers: packed\n")
