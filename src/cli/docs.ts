import { readFile, writeFile } from "node:fs/promises"
import { withErrorTable } from "../ErrorReference.ts"
import { withOperationsTable } from "../OperationsTable.ts"
import { withSettingsTable } from "../SettingsTable.ts"

/** Brings the README's tables of operations, errors and settings up to date: `npm run docs`. */
const readme = new URL("../../README.md", import.meta.url)

const text = await readFile(readme, "utf8")
await writeFile(readme, withSettingsTable(withErrorTable(withOperationsTable(text))))
