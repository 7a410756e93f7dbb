import { execFile } from "node:child_process"
import { cpSync, mkdirSync, symlinkSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const run = promisify(execFile)
const root = fileURLToPath(new URL("../..", import.meta.url))

/** npm's environment, without what it would ask the registry for besides packages. */
export const npmEnvironment = {
  ...process.env,
  npm_config_audit: "false",
  npm_config_fund: "false",
  npm_config_update_notifier: "false"
}

/** Puts a package of the project's where another project looks for it. */
export const link = (name: string, modules: string): void => {
  mkdirSync(dirname(join(modules, name)), { recursive: true })
  symlinkSync(join(root, "node_modules", name), join(modules, name))
}

/**
 * Builds and packs a workspace as the guides say, in a copy, so that nobody who uses the checkout meanwhile is disturbed.
 *
 * @param directory gets the copy and the archive
 * @returns the archive's path
 */
export const packWorkspace = async (name: string, directory: string): Promise<string> => {
  const copy = join(directory, "copy")
  for (const file of ["package.json", "LICENSE", "tsconfig.json", "src"]) {
    cpSync(join(root, file), join(copy, file), { recursive: true })
  }
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"))
  const { stdout } = await run("npm", ["pack", "-w", name, "--silent", "--pack-destination", directory], {
    cwd: copy,
    env: npmEnvironment
  })
  return join(directory, stdout.trim().split("\n").at(-1) ?? "")
}
