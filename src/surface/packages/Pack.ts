import { execFile } from "node:child_process"
import { cp, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Struct } from "effect"
import { build } from "esbuild"
import { packageRoot } from "../../platform/settings/PackageFolders.ts"
import { version } from "../../platform/settings/Version.ts"
import { openApiDocument } from "../docs/OpenApiDocument.ts"
import { openApiTypes } from "./OpenApiTypes.ts"
import { bundlePrograms, licencesOf } from "./ProgramBundles.ts"

/** Creates the archives of the packages from a checkout. It needs npm and the development dependencies. */

const repository = fileURLToPath(packageRoot)
const run = promisify(execFile)

const pack = async (folder: string, destination: string): Promise<void> => {
  await run("npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", destination], {
    cwd: folder,
    env: { ...process.env, npm_config_update_notifier: "false" }
  })
}

/** Compiles without checking, which `npm run check` does. */
const compile = (workspace: string, outDir: string) => {
  const compiler = join(repository, "node_modules/typescript/bin/tsc")
  return run(process.execPath, [compiler, "-p", workspace, "--outDir", outDir, "--noCheck", "--singleThreaded"])
}

/** Additions to the types of the OpenAPI document; `from` is the module of the client's own types. */
const fetchClientTypes = (from: string) => `
import type { FetchClient, FetchClientOptions } from "${from}"
export { ApiError, type FetchClient, type FetchClientOptions } from "${from}"
/**
 * The client of the API for one key. It repeats nothing and follows no redirect. Throws a \`TypeError\` if the key can't be
 * one, without naming it.
 */
export declare const makeFetchClient: (options: FetchClientOptions) => FetchClient<paths>
`

/** The workspaces that are packed, with how each is built into a folder. */
const workspaces = {
  /** The typed client with the contract it needs; and the client by `fetch`, which needs nothing. */
  client: async (workspace: string, dist: string): Promise<void> => {
    const [types] = await Promise.all([openApiTypes(openApiDocument()), compile(workspace, dist)])
    await build({
      entryPoints: { index: join(workspace, "index.ts"), openapi: join(workspace, "Fetch.ts") },
      outdir: dist,
      bundle: true,
      format: "esm",
      target: "node20",
      external: ["effect", "@effect/platform"]
    })
    await writeFile(join(dist, "openapi.d.ts"), types + fetchClientTypes("./client/Fetch.js"))
  },
  /** The consumer's kit, for `import` and for `require`. */
  webhooks: async (workspace: string, dist: string): Promise<void> => {
    await compile(workspace, dist)
    const common = join(dist, "cjs")
    const outfile = join(common, "index.js")
    const entryPoints = [join(workspace, "index.ts")]
    await build({ entryPoints, outfile, bundle: true, platform: "node", target: "node20", format: "cjs" })
    // The same declarations, which this file makes those of a CommonJS module
    await writeFile(join(common, "package.json"), '{ "type": "commonjs" }\n')
    for (const file of await readdir(dist)) {
      if (file.endsWith(".d.ts")) await cp(join(dist, file), join(common, file))
    }
  }
} as const
type Workspace = keyof typeof workspaces

/** Builds a workspace into its own `dist`, as its `npm run build` does. */
export const buildWorkspace = async (name: Workspace, dist = join(repository, "src", name, "dist")): Promise<void> => {
  await rm(dist, { recursive: true, force: true })
  await workspaces[name](join(repository, "src", name), dist)
}

const packWorkspace = async (name: Workspace, folder: string, destination: string): Promise<void> => {
  await mkdir(folder)
  for (const file of ["package.json", "README.md", "LICENSE"]) {
    await cp(join(repository, "src", name, file), join(folder, file))
  }
  await buildWorkspace(name, join(folder, "dist"))
  await pack(folder, destination)
}

const cliProgram = "src/app/cli/developer.ts"

const cliManifest = {
  name: "connected-payments-cli",
  version,
  description: "Commands for developers who integrate connected-payments: listen, trigger and mcp",
  license: "MIT",
  type: "module",
  bin: { "connected-payments": "./cli/developer.js" },
  engines: { node: ">=20.12" }
}

const cliReadme = `# connected-payments-cli

\`connected-payments listen\` posts the sandbox's events to a program on your machine, \`connected-payments trigger\` makes an
event happen, and \`connected-payments mcp\` serves the tools to an agent. They need the URL of a running service and an API
key of it: see \`connected-payments --help\`, and the guides at the service's \`/docs\`.
`

/** The developer's commands: one program, bundled with all that it needs. */
const packCli = async (folder: string, destination: string): Promise<void> => {
  const packages = await bundlePrograms({
    programs: [cliProgram],
    // The code is below the manifest, as in a build
    base: "src/app",
    directory: folder,
    chunks: "chunks",
    minify: true
  })
  await writeFile(join(folder, "package.json"), `${JSON.stringify(cliManifest, undefined, 2)}\n`)
  await writeFile(join(folder, "README.md"), cliReadme)
  await writeFile(join(folder, "third-party-licences.txt"), await licencesOf(packages))
  await cp(join(repository, "LICENSE"), join(folder, "LICENSE"))
  await pack(folder, destination)
}

export const packPackages = async (destination: string): Promise<void> => {
  const work = await mkdtemp(join(tmpdir(), "connected-payments-packages-"))
  try {
    await rm(destination, { recursive: true, force: true })
    await mkdir(destination, { recursive: true })
    for (const name of Struct.keys(workspaces)) await packWorkspace(name, join(work, name), destination)
    await packCli(join(work, "cli"), destination)
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}
