import { readFileSync } from "node:fs"
import { createServer, type Server } from "node:http"

/** What a lock file says of a package, as far as a registry does too. */
interface Locked {
  readonly version: string
  readonly [key: string]: unknown
}

interface Packument {
  readonly name: string
  readonly versions: Record<string, unknown>
  readonly "dist-tags": { latest: string }
}

/** The next major version, which the registry's `latest` is for some of Effect's packages; nothing here takes it. */
const nextEffect = (name: string) => ({
  name,
  version: "4.0.0",
  ...(name === "effect" ? {} : { peerDependencies: { effect: "^4.0.0" } }),
  dist: { tarball: "http://127.0.0.1/none.tgz", shasum: "0".repeat(40) }
})

const described = [
  "dependencies",
  "optionalDependencies",
  "peerDependencies",
  "peerDependenciesMeta",
  "engines",
  "os",
  "cpu",
  "libc",
  "bin"
]

/** The packages of a lock file as a registry describes them, with the next major as `latest` where that is so there. */
export const packumentsOf = (lockFile: string): ReadonlyMap<string, Packument> => {
  const { packages }: { readonly packages: Readonly<Record<string, Locked>> } = JSON.parse(
    readFileSync(lockFile, "utf8")
  )
  const found = new Map<string, Packument>()
  for (const [path, locked] of Object.entries(packages)) {
    const name = path.split("node_modules/").at(-1) ?? ""
    if (name === "") continue
    const packument = found.get(name) ?? { name, versions: {}, "dist-tags": { latest: locked.version } }
    packument.versions[locked.version] = {
      name,
      version: locked.version,
      ...Object.fromEntries(described.flatMap((key) => (locked[key] === undefined ? [] : [[key, locked[key]]]))),
      dist: { tarball: locked["resolved"], integrity: locked["integrity"] }
    }
    if (name === "effect" || name === "@effect/sql-pg") {
      packument.versions["4.0.0"] = nextEffect(name)
      packument["dist-tags"].latest = "4.0.0"
    }
    found.set(name, packument)
  }
  return found
}

/** A registry on loopback that describes these packages and holds none: enough for npm to choose versions. */
export const startRegistry = (
  packuments: ReadonlyMap<string, Packument>
): Promise<{ readonly url: string; readonly server: Server }> =>
  new Promise((resolve) => {
    const server = createServer((request, response) => {
      const packument = packuments.get(decodeURIComponent((request.url ?? "").slice(1)))
      response.writeHead(packument === undefined ? 404 : 200, { "content-type": "application/json" })
      response.end(JSON.stringify(packument ?? { error: "Not found" }))
    })
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      resolve({
        url: `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}/`,
        server
      })
    })
  })
