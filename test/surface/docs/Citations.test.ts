import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "@effect/vitest"
import { filesOf } from "../../harness/Sources.ts"

// Comments say which rule of the contract they explain, as in `(contract 9.4)`; the rules are in src/docs/maintaining/contract.md

const root = fileURLToPath(new URL("../../../", import.meta.url))
const contract = readFileSync(join(root, "src/docs/maintaining/contract.md"), "utf8")

const rules: ReadonlyArray<string> = [...contract.matchAll(/<a id="([\d.]+)">/g)].map(([, id = ""]) => id)
const sections: ReadonlyArray<string> = [...contract.matchAll(/^## (\d+)\. /gm)].map(([, id = ""]) => id)

const own = fileURLToPath(import.meta.url)

const files = (["src", "test"] as const).flatMap((folder) =>
  filesOf(folder)
    .filter((path) => /\.(?:ts|mjs|js|sql)$/.test(path))
    .map((path) => join(root, folder, path))
    .filter((path) => path !== own)
)

describe("the contract", () => {
  it("numbers its sections and their rules without a gap", () => {
    expect(sections).toEqual(sections.map((_, index) => String(index + 1)))
    expect(new Set(rules).size).toBe(rules.length)
    for (const section of sections) {
      const ofSection = rules.filter((rule) => rule.startsWith(`${section}.`))
      expect(ofSection).toEqual(ofSection.map((_, index) => `${section}.${index + 1}`))
      expect(ofSection.length, section).toBeGreaterThan(0)
    }
    // The number that is shown is the one that is linked to
    for (const rule of rules) expect(contract).toMatch(new RegExp(`<a id="${rule}"></a>(?:\\*\\*)?${rule}(?:\\*\\*)? `))
  })

  it("has every rule that code and tests cite", () => {
    const known = new Set([...sections, ...rules])
    let count = 0
    const wrong: Array<string> = []
    for (const file of files) {
      const text = readFileSync(file, "utf8")
      for (const [citation, numbers = ""] of text.matchAll(/\(contract(?:[,:;]|\s+(?=[\d*/]))([^)]*)\)/g)) {
        count++
        const cited = /^\d+(?:\.\d+)?(?:(?:, | to )\d+(?:\.\d+)?)*$/.test(numbers) ? numbers.split(/, | to /) : []
        if (cited.length === 0 || cited.some((number) => !known.has(number))) wrong.push(`${file}: ${citation}`)
      }
    }
    expect(wrong).toEqual([])
    expect(count).toBeGreaterThan(100)
  })
})
