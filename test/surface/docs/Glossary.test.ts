import { existsSync, readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { expect, it } from "@effect/vitest"

const src = new URL("../../../src/", import.meta.url)
const schema = new URL("platform/storage/schema/", src)
const tables = readdirSync(fileURLToPath(schema))
  .map((file) => readFileSync(new URL(file, schema), "utf8"))
  .join("\n")

/** Rows of the glossary: the term, and the names by which the code and the tables have it. */
const rows = readFileSync(new URL("docs/maintaining/glossary.md", src), "utf8")
  .split("\n")
  .filter((line) => line.startsWith("| ") && !/^\| (Term|---) /.test(line))
  .map((line) => line.split(" | "))
  .map(([term = "", , places = ""]) => ({
    term: term.replace("| ", ""),
    places: [...places.matchAll(/`([^`]+)`/g)].map(([, place = ""]) => place)
  }))

it("the glossary gives each term once, with files and tables that exist", () => {
  expect(rows.length).toBeGreaterThan(40)
  expect(new Set(rows.map(({ term }) => term)).size).toBe(rows.length)
  const isThere = (place: string) =>
    place.includes("/") || place.endsWith(".ts")
      ? existsSync(new URL(place, src))
      : new RegExp(`CREATE TABLE payments\\.${place.split(".")[0]} \\(`).test(tables)
  expect(rows.filter(({ places }) => places.length === 0 || !places.every(isThere))).toEqual([])
})
