import { readFile, writeFile } from "node:fs/promises"
import { codeFolder } from "../settings/PackageFolders.ts"
import { consoleOperations, consoleOperationsPath } from "./ConsoleOperations.ts"
import { withErrorTable } from "./ErrorReference.ts"
import { withAttemptTable, withEventTable, withSettingsTable } from "./GuideTables.ts"
import { withOperationsTable } from "./OperationsTable.ts"
import { webhookTypes, webhookTypesPath } from "./WebhookTypes.ts"

/** Brings the guides' tables up to date with the code: `npm run docs`. */
const tables: ReadonlyArray<readonly [guide: string, withTable: (text: string) => string]> = [
  ["events", withEventTable],
  ["endpoints", withAttemptTable],
  ["errors", withErrorTable],
  ["api", withOperationsTable],
  ["settings", withSettingsTable]
]

for (const [guide, withTable] of tables) {
  const file = new URL(`docs/${guide}.md`, codeFolder)
  await writeFile(file, withTable(await readFile(file, "utf8")))
}

/** The consumer kit's types of `data`, which derive from the catalog of events. */
await writeFile(new URL(webhookTypesPath, codeFolder), webhookTypes())

/** Where the console finds each operation, without the contract's schemas. */
await writeFile(new URL(consoleOperationsPath, codeFolder), consoleOperations())
