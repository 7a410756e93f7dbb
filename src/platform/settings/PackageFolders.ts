import { existsSync } from "node:fs"

/**
 * The folders of this package. Modules look for files from here, not relative to themselves: in a bundle they are
 * somewhere else than in the sources.
 */

const isRoot = (folder: URL) => existsSync(new URL("package.json", folder)) || folder.pathname === "/"

const foldersOf = (module: string): readonly [root: URL, code: URL] => {
  let code = new URL("./", module)
  let root = new URL("../", code)
  while (!isRoot(root)) [root, code] = [new URL("../", root), root]
  return [root, code]
}

/**
 * `packageRoot` is the innermost folder around the code that has a `package.json`; `codeFolder` is the folder in it with
 * the code that runs: `src`, or `dist` in a build.
 */
export const [packageRoot, codeFolder] = foldersOf(import.meta.url)
