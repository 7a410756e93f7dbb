import { readFile, writeFile } from "node:fs/promises"
import { withOperationsTable } from "../OperationsTable.ts"

/** Brings the README's table of operations up to date: `npm run docs`. */
const readme = new URL("../../README.md", import.meta.url)

await writeFile(readme, withOperationsTable(await readFile(readme, "utf8")))
