import { readFile, writeFile } from "node:fs/promises"
import { codeFolder } from "../../platform/settings/PackageFolders.ts"
import { consoleData } from "./ConsoleOperations.ts"
import { guideTables } from "./GuideTables.ts"
import { webhookTypes, webhookTypesPath } from "./WebhookTypes.ts"

/** Brings the guides' tables up to date with the code: `npm run docs`. */
for (const { file, withTable } of guideTables) await writeFile(file, withTable(await readFile(file, "utf8")))

/** The consumer kit's types of `data`, which derive from the catalog of events. */
await writeFile(new URL(webhookTypesPath, codeFolder), webhookTypes())

/** Where the console finds each operation, without the contract's schemas. */
for (const [path, text] of Object.entries(consoleData)) await writeFile(new URL(path, codeFolder), text)
