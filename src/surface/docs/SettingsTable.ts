import { settingRows } from "../../platform/settings/Definitions.ts"
import { exporterRows } from "../../platform/settings/ExportSettings.ts"
import type { SettingRow } from "../../platform/settings/Setting.ts"

/** The settings as a table for operators, derived from their definitions. */

const rows: ReadonlyArray<SettingRow> = [...settingRows, ...exporterRows]

export const documentedSettings: ReadonlyArray<string> = rows.map(({ name }) => name)

export const documentedInProduction = (what: "required" | "refused"): ReadonlyArray<string> =>
  rows.filter(({ production }) => production === what).map(({ name }) => name)

const lineOf = ({ about, bounds, fallback, file, name, production }: SettingRow): string => {
  const inProduction = production === undefined ? "" : `; ${production} with \`MODE=production\``
  return `| \`${name}\` | ${fallback} | ${file === undefined ? bounds : `or \`${file}\``} | ${about}${inProduction} |`
}

export const settingsTable = (): string =>
  ["| Setting | Default | Bounds | |", "| --- | --- | --- | --- |", ...rows.map(lineOf), ""].join("\n")
