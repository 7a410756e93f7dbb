import { existsSync } from "node:fs"
import { Effect } from "effect"
import { InternalError } from "../../platform/errors/Errors.ts"
import { codeFolder } from "../../platform/settings/PackageFolders.ts"

/** Files that a build contains, and a service run from its sources makes. Paths are below the code's folder. */
interface Preparation<A> {
  /** For the error: "The console". */
  readonly what: string
  /** A path that only a build has, and how it is read. */
  readonly built: string
  readonly read: () => Promise<A>
  /** A path that only the sources have, and how it is made from them. */
  readonly source: string
  readonly make: () => Promise<A>
}

/** Reads or makes it; undefined if neither a build nor the sources are here, as in a team's own bundle. */
export const prepared = <A>({ built, make, read, source, what }: Preparation<A>) => {
  const isHere = (path: string) => existsSync(new URL(path, codeFolder))
  const find = isHere(built) ? read : isHere(source) ? make : undefined
  return (
    find &&
    Effect.tryPromise({
      try: find,
      catch: (cause) => new InternalError({ message: `${what} could not be prepared.`, cause })
    })
  )
}
