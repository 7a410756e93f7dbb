import { existsSync } from "node:fs"
import { Effect } from "effect"
import { type BuiltConsoleUnreadable, builtList, readBuilt, type ServedConsole } from "./Built.ts"
import { type BundleFailed, bundle } from "./Bundle.ts"
import { consolePath } from "./Paths.ts"

/**
 * Where the console comes from: in the package and the image it is built; from the sources it is bundled when the first
 * browser asks for it.
 */

/**
 * The console's sources beside this module's, or the built console beside the compiled modules; or beside the folder of a
 * bundle that this module is in, which is not as deep.
 */
const folders = ["../../console/", "../console/"].map((path) => new URL(path, import.meta.url))

/** The console's public URL; null if neither it nor its sources are here, so that nothing leads to it. */
export const consoleUrlOf = (publicUrl: string): Effect.Effect<string | null> =>
  Effect.suspend(() =>
    findConsole() === undefined
      ? Effect.as(Effect.logWarning("The console is not served: its files are not beside the service's own."), null)
      : Effect.succeed(`${publicUrl}${consolePath}`)
  )

/** How the console is had; undefined if neither it nor its sources are here, as in somebody's own bundle. */
export const findConsole = (): Effect.Effect<ServedConsole, BuiltConsoleUnreadable | BundleFailed> | undefined => {
  for (const folder of folders) {
    const found = consoleIn(folder)
    if (found !== undefined) return found
  }
  return undefined
}

const consoleIn = (at: URL): Effect.Effect<ServedConsole, BuiltConsoleUnreadable | BundleFailed> | undefined => {
  if (existsSync(builtList(at))) return readBuilt(at)
  if (!existsSync(new URL("main.tsx", at))) return undefined
  return Effect.map(bundle(at), ({ files, imports, script, style, theme }) => ({
    theme,
    script,
    imports,
    style,
    files: files.map(({ body, contentType, name }) => ({ name, contentType, body: Buffer.from(body) }))
  }))
}
