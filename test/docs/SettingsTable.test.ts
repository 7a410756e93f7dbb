import { readFile } from "node:fs/promises"
import { describe, expect, it } from "@effect/vitest"
import { ConfigProvider, ConfigProviderPathPatch, Effect, Either } from "effect"
import {
  documentedInProduction,
  documentedSettings,
  settingsTable,
  withSettingsTable
} from "../../src/docs/SettingsTable.ts"
import { logLevel, readSettings } from "../../src/settings/Settings.ts"

/** The names that the settings ask the environment for. */
const namesRead = () => {
  const names = new Set<string>()
  const empty = ConfigProvider.fromMap(new Map())
  const recording = ConfigProvider.fromFlat(
    ConfigProvider.makeFlat({
      load: (path, primitive, split) => {
        names.add(path.join("."))
        return empty.flattened.load(path, primitive, split)
      },
      enumerateChildren: (path) => empty.flattened.enumerateChildren(path),
      patch: ConfigProviderPathPatch.empty
    })
  )
  Effect.runSync(Effect.zipRight(readSettings, logLevel).pipe(Effect.withConfigProvider(recording)))
  return [...names]
}

const refusals = (variables: Readonly<Record<string, string>>): ReadonlyArray<string> =>
  Effect.runSync(
    Effect.either(Effect.withConfigProvider(readSettings, ConfigProvider.fromMap(new Map(Object.entries(variables)))))
  ).pipe(
    Either.match({
      onLeft: ({ message }) => message.split("\n").map((line) => line.replace(/:.*/, "")),
      onRight: () => []
    })
  )

describe("the table of settings", () => {
  it("has every setting that is read once, and no other but those of log and telemetry", () => {
    // The log's own, which is read where the log is made, and the telemetry's
    const own = documentedSettings.filter((name) => !/^(OTEL_.*|LOG_REQUESTS)$/.test(name))
    expect(own.toSorted()).toEqual(namesRead().toSorted())
    expect(new Set(own).size).toBe(own.length)
  })

  it("says which settings production needs: a start without them names the same", () => {
    const missing = refusals({ MODE: "production" })
    expect(missing.filter((name) => !name.startsWith("PROVIDER_")).toSorted()).toEqual(
      documentedInProduction("required").toSorted()
    )
  })

  it("says which settings production refuses: a start with them names the same", () => {
    const refused = documentedInProduction("refused")
    const values = {
      ALLOW_LOCAL_DESTINATIONS: "true",
      PROVIDER_API_URL: "http://127.0.0.1:1",
      ALLOWED_DESTINATION_NETWORKS: "10.0.0.0/8"
    }
    expect(Object.keys(values).toSorted()).toEqual(refused.toSorted())
    const without = refusals({ MODE: "production" })
    const more = refusals({ MODE: "production", ...values }).filter((name) => !without.includes(name))
    expect(more.toSorted()).toEqual(refused.toSorted())
  })

  it("writes defaults as they can be set", () => {
    const table = settingsTable()
    expect(table).toContain("| `DELIVERY_TIMEOUT`, `DELIVERY_LEASE_MARGIN` | `10 seconds`, `5 seconds` |")
    expect(table).toContain("| `RECEIPT_RETENTION`, `AUDIT_RETENTION` | `400 days`, `730 days` |")
    expect(table).toContain("| `HOST`, `PORT` | `127.0.0.1`, `8080` |")
    for (const [name, value] of [
      ["DELIVERY_POLL_INTERVAL", "1 second"],
      ["PROVIDER_TIMEOUT", "30 seconds"],
      ["DELIVERY_RETENTION", "30 days"]
    ] as const) {
      expect(table).toContain(`| \`${name}\` | \`${value}\` |`)
      expect(refusals({ [name]: value })).toEqual([])
    }
  })

  it("in the guide is up to date: `npm run docs` writes it", async () => {
    const guide = await readFile(new URL("../../src/docs/settings.md", import.meta.url), "utf8")
    expect(guide).toContain(settingsTable())
    expect(withSettingsTable(guide)).toBe(guide)
  })
})
