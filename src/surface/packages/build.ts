import { fileURLToPath } from "node:url"
import { packageRoot } from "../../platform/settings/PackageFolders.ts"
import { buildWorkspace, packPackages } from "./Pack.ts"

/**
 * Packs what developers install from a running service into `dist`, as a part of `npm run build`; or builds the named
 * workspace into its own `dist`, as its `npm run build` does.
 */

const [name] = process.argv.slice(2)
if (name === "webhooks" || name === "client") {
  await buildWorkspace(name)
} else {
  await packPackages(fileURLToPath(new URL("dist/packages/", packageRoot)))
  process.stdout.write("The packages for developers: packed\n")
}
