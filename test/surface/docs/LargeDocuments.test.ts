import { existsSync } from "node:fs"
import { readFile } from "node:fs/promises"
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

  it("are not kept beside the sources, where they would be served when they are out of date", () => {
    for (const name of ["openapi.json", "reference.js"]) {
      expect(existsSync(new URL(`../../../src/docs/${name}`, import.meta.url)), name).toBe(false)
    }
  })
})
