import { readFile } from "node:fs/promises"
import { describe, expect, it } from "@effect/vitest"
import { guideTables } from "../../../src/surface/docs/GuideTables.ts"

describe("the table", () => {
  it.each(guideTables)("in the guide $guide is up to date: `npm run docs` writes it", async (written) => {
    const guide = await readFile(written.file, "utf8")
    expect(guide).toContain(written.table())
    expect(written.withTable(guide)).toBe(guide)
    expect(written.withTable("no markers")).toBe("no markers")
  })
})
