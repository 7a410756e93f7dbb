import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { filesOf } from "../../harness/Sources.ts"

const root = fileURLToPath(new URL("../../../", import.meta.url))

const Manifest = Schema.parseJson(
  Schema.Struct({
    dependencies: Schema.optionalWith(Schema.Record({ key: Schema.String, value: Schema.String }), {
      default: () => ({})
    }),
    peerDependencies: Schema.optionalWith(Schema.Record({ key: Schema.String, value: Schema.String }), {
      default: () => ({})
    })
  })
)

const manifestIn = (folder: string) =>
  Schema.decodeUnknownSync(Manifest)(readFileSync(join(root, folder, "package.json"), "utf8"))

const sources = filesOf("src")
  .filter((path) => path.endsWith(".ts"))
  .map((path) => readFileSync(join(root, "src", path), "utf8"))
  .join("\n")

const isImported = (name: string) => sources.includes(`"${name}"`) || sources.includes(`"${name}/`)

describe("the dependencies", () => {
  it("are imported by the service, or explained to contributors as what an imported package needs beside it", () => {
    const { dependencies, peerDependencies } = manifestIn("")
    const needed = { ...dependencies, ...peerDependencies }
    const unused = Object.keys(needed).filter((name) => !isImported(name))
    const guide = readFileSync(join(root, "src/docs/maintaining/contributing.md"), "utf8")
    const [, section = ""] = /\n## Dependencies\n([\s\S]*)$/.exec(guide) ?? []
    const explained = [...section.matchAll(/^\| `([^`]+)` \| `([^`]+)` \|/gm)]
    expect(explained.map(([, name]) => name)).toEqual(unused.toSorted())
    for (const [, name = "", neededBy = ""] of explained) {
      expect([neededBy, isImported(neededBy)]).toEqual([neededBy, true])
      expect(Object.keys(needed)).toContain(neededBy)
      expect(Object.keys(manifestIn(`node_modules/${neededBy}`).peerDependencies), neededBy).toContain(name)
    }
  })
})
