import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { consoleData } from "../../src/surface/docs/ConsoleOperations.ts"
import { firstPageSize, maxFirstPageBytes, readBuilt, writeBuilt } from "../../src/surface/http/console/Built.ts"
import { type Bundle, bundle } from "../../src/surface/http/console/Bundle.ts"

const sources = new URL("../../src/console/", import.meta.url)

describe("the console's bundle", () => {
  let made: Bundle

  beforeAll(async () => {
    made = await bundle(sources)
  })

  it("loads at most 120 kB of compressed script on the first page", () => {
    const { bytes, page, scripts } = firstPageSize(made)
    console.log(`First page (${page}): ${(bytes / 1000).toFixed(1)} kB in ${scripts.length} scripts`)
    expect(bytes).toBeLessThanOrEqual(maxFirstPageBytes)
    // It measures what it says it does
    expect(bytes).toBeGreaterThan(10_000)
  })

  it("loads each page when it is opened, and nothing of the contract's schemas", () => {
    expect(Object.keys(made.pages).length).toBeGreaterThan(10)
    const text = made.files.map(({ body }) => Buffer.from(body).toString("utf8")).join("\n")
    expect(text).not.toMatch(/effect\/Schema|ParseError|@effect\//)
  })

  it("shows the chosen appearance by a small classic script, which needs no other", () => {
    const script = made.files.find(({ name }) => name === made.theme)
    const text = Buffer.from(script?.body ?? []).toString("utf8")
    expect(text).toContain("data-theme")
    expect(text).not.toMatch(/\b(?:import|export)\b/)
    expect(text.length).toBeLessThan(1000)
  })

  it("names files by their content, and asks no other host for anything", () => {
    for (const { body, name } of made.files) {
      expect(name).toMatch(/^(?:[\w]+)-[A-Z0-9]{8}\.(?:js|css)$/)
      const text = Buffer.from(body).toString("utf8")
      expect([name, text.match(/url\((?!["']?data:)[^)]*\)|@import/)]).toEqual([name, null])
    }
  })

  describe("written and read again", () => {
    const directory = mkdtempSync(join(tmpdir(), "connected-payments-console-"))
    afterAll(() => rmSync(directory, { recursive: true, force: true }))

    it("is the same, and smaller in every coding", async () => {
      const folder = pathToFileURL(`${join(directory, "console")}/`)
      await writeBuilt(made, folder)
      const { files, imports, script, style, theme } = await readBuilt(folder)
      expect({ theme, script, style, imports }).toEqual({
        theme: made.theme,
        script: made.script,
        style: made.style,
        imports: made.imports
      })
      expect(files.map(({ body, contentType, name }) => [name, contentType, body.toString("utf8")])).toEqual(
        made.files.map(({ body, contentType, name }) => [name, contentType, Buffer.from(body).toString("utf8")])
      )
      const bytes = (sizes: ReadonlyArray<Buffer | undefined>) =>
        sizes.reduce((sum, buffer) => sum + (buffer?.byteLength ?? Number.NaN), 0)
      const plain = bytes(files.map(({ body }) => body))
      expect(bytes(files.map(({ compressed }) => compressed?.br))).toBeLessThan(plain / 2)
      expect(bytes(files.map(({ compressed }) => compressed?.gzip))).toBeLessThan(plain / 2)
    })
  })
})

describe("the console's list of operations", () => {
  it("is the contract's: bring it up to date with `npm run docs`", () => {
    for (const [path, text] of Object.entries(consoleData)) {
      expect(readFileSync(new URL(`../../src/${path}`, import.meta.url), "utf8")).toBe(text)
    }
  })
})
