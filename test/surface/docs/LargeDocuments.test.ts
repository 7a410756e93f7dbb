import { existsSync } from "node:fs"
import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, inject, it } from "vitest"
import { readLargeDocuments } from "../../../src/surface/docs/LargeDocuments.ts"

describe("the API reference's large documents", () => {
  it("are files of a build, the same as the sources create", async () => {
    const created = await readLargeDocuments()
    const built = join(inject("buildDirectory"), "src", "docs")
    for (const [name, body] of Object.entries(created)) {
      expect(await readFile(join(built, name), "utf8"), name).toBe(body)
    }
    expect(JSON.parse(created["openapi.json"])).toMatchObject({ openapi: "3.1.0" })
    expect(created["reference.js"].length).toBeGreaterThan(1_000_000)
  })

  it("are in no program, which would hold their text in memory, asked for or not", async () => {
    const folder = join(inject("buildDirectory"), "src", "chunks")
    const chunks = await readdir(folder)
    const texts = await Promise.all(chunks.map((chunk) => readFile(join(folder, chunk), "utf8")))
    // That the programs are looked at
    expect(texts.filter((text) => text.includes("reference.js"))).not.toEqual([])
    expect(chunks.filter((_, index) => texts[index]?.includes("Minified by jsDelivr"))).toEqual([])
  })

  it("are not kept beside the sources, where they would be served when they are out of date", () => {
    for (const name of ["openapi.json", "reference.js"]) {
      expect(existsSync(new URL(`../../../src/docs/${name}`, import.meta.url)), name).toBe(false)
    }
  })
})
