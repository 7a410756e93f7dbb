import { Effect } from "effect"
import { codeFolder } from "../../../platform/settings/PackageFolders.ts"
import { prepared } from "../../docs/Prepared.ts"
import { listName, readBuilt, type ServedConsole } from "./Built.ts"
import { bundle } from "./Bundle.ts"
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
export const findConsole = () =>
  prepared({
    what: "The console",
    built: `console/${listName}`,
    read: () => readBuilt(folder),
    source: "console/main.tsx",
    make: async (): Promise<ServedConsole> => {
      const { files, ...made } = await bundle(folder)
      return { ...made, files: files.map((file) => ({ ...file, body: Buffer.from(file.body) })) }
    }
  })
