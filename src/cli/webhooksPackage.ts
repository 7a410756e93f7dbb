import { execFileSync } from "node:child_process"
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

/**
 * Packs the consumer's kit as a separate package, `connected-payments-webhooks`, for those who only receive events:
 * `npm run pack:webhooks`. The archive is written to the current directory; arguments are passed to `npm pack`, e.g.
 * `-- --pack-destination /tmp`.
 */
const root = fileURLToPath(new URL("../..", import.meta.url))
const target = join(root, "dist/connected-payments-webhooks")

interface Manifest {
  readonly version: string
  readonly license: string
  readonly engines: Readonly<Record<string, string>>
}

// The project's own file, so its form is known
const { engines, license, version }: Manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))

const manifest = {
  name: "connected-payments-webhooks",
  version,
  description: "Verifies and receives the signed webhook events of connected-payments; no dependencies",
  license,
  type: "module",
  main: "./dist/index.js",
  types: "./dist/index.d.ts",
  exports: {
    ".": { types: "./dist/index.d.ts", default: "./dist/index.js" },
    "./package.json": "./package.json"
  },
  files: ["dist"],
  sideEffects: false,
  engines
}

rmSync(target, { recursive: true, force: true })
mkdirSync(target, { recursive: true })
const compiler = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin/tsc")
execFileSync(process.execPath, [compiler, "--project", join(root, "src/webhooks/tsconfig.json")], { stdio: "inherit" })
writeFileSync(join(target, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`)
copyFileSync(join(root, "src/webhooks/README.md"), join(target, "README.md"))
copyFileSync(join(root, "LICENSE"), join(target, "LICENSE"))
execFileSync("npm", ["pack", target, ...process.argv.slice(2)], { stdio: "inherit" })
