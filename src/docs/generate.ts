import { readFile, writeFile } from "node:fs/promises"
import { withAttemptTable } from "./AttemptReference.ts"
import { withErrorTable } from "./ErrorReference.ts"
import { withEventTable } from "./EventReference.ts"
import { withOperationsTable } from "./OperationsTable.ts"
import { withSettingsTable } from "./SettingsTable.ts"

/** Brings the README's tables of events, attempts' error codes, errors, operations and settings up to date: `npm run docs`. */
const readme = new URL("../../README.md", import.meta.url)

const tables = [withEventTable, withAttemptTable, withErrorTable, withOperationsTable, withSettingsTable]

const text = await readFile(readme, "utf8")
await writeFile(
  readme,
  tables.reduce((written, withTable) => withTable(written), text)
)
