import { existsSync } from "node:fs"
import { Effect } from "effect"
import { codeFolder } from "../../../platform/settings/PackageFolders.ts"
import { type BuiltConsoleUnreadable, builtList, readBuilt, type ServedConsole } from "./Built.ts"
import { type BundleFailed, bundle } from "./Bundle.ts"
import { consolePath } from "./Paths.ts"

/** The package and the image contain it built; from the sources it is bundled on its first request. */

/** The console's sources, or what a build made of them. */
const folder = new URL("console/", codeFolder)

/** The console's public URL; null if neither it nor its sources are here, so that nothing links to it. */
export const consoleUrlOf = (publicUrl: string): Effect.Effect<string | null> =>
  Effect.suspend(() =>
    findConsole() === undefined
      ? Effect.as(Effect.logWarning("The console is not served: its files are not beside the service's own."), null)
      : Effect.succeed(`${publicUrl}${consolePath}`)
  )

/** Reads or bundles the console; undefined if neither it nor its sources are here, as in somebody's own bundle. */
export const findConsole = (): Effect.Effect<ServedConsole, BuiltConsoleUnreadable | BundleFailed> | undefined => {
  if (existsSync(builtList(folder))) return readBuilt(folder)
  if (!existsSync(new URL("main.tsx", folder))) return undefined
  return Effect.map(bundle(folder), ({ files, imports, script, style, theme }) => ({
    theme,
    script,
    imports,
    style,
    files: files.map(({ body, contentType, name }) => ({ name, contentType, body: Buffer.from(body) }))
  }))
}
