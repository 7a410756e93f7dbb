import { packageRoot } from "../../platform/settings/PackageFolders.ts"
import { attemptTable } from "./AttemptReference.ts"
import { errorTable } from "./ErrorReference.ts"
import { eventTable } from "./EventReference.ts"
import { withGenerated } from "./Generated.ts"
import { guideFile } from "./Guides.ts"
import { settingsTable } from "./SettingsTable.ts"

/** The tables in the guides that are written from the code, each between markers with its name. */
const tables: ReadonlyArray<readonly [guide: string, what: string, table: () => string]> = [
  ["events", "events", eventTable],
  ["endpoints", "error codes of attempts", attemptTable],
  ["errors", "errors", errorTable],
  ["settings", "settings", settingsTable]
]

/** Each of these guides, with a function that brings its table up to date. */
export const guideTables = tables.map(([guide, what, table]) => ({
  file: new URL(guideFile(guide), packageRoot),
  guide,
  table,
  withTable: (text: string) => withGenerated(text, what, table())
}))
