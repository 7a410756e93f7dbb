import { execFile } from "node:child_process"
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { packageRoot } from "../../platform/settings/PackageFolders.ts"
import { version } from "../../platform/settings/Version.ts"
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

/** The consumer's kit: its workspace, compiled. */
const packKit = async (folder: string, destination: string): Promise<void> => {
  const workspace = join(repository, "src/webhooks")
  await mkdir(folder)
  for (const file of ["package.json", "README.md", "LICENSE"]) await cp(join(workspace, file), join(folder, file))
  const compiler = join(repository, "node_modules/typescript/bin/tsc")
  await run(process.execPath, [compiler, "--project", workspace, "--outDir", join(folder, "dist")])
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
    await packKit(join(work, "webhooks"), destination)
    await packCli(join(work, "cli"), destination)
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}
