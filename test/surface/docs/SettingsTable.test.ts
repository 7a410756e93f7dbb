import { describe, expect, it } from "@effect/vitest"
import { ConfigProvider, ConfigProviderPathPatch, Effect, Either } from "effect"
import { logLevel, logRequests, readSettings } from "../../../src/platform/settings/Settings.ts"
import { documentedInProduction, documentedSettings, settingsTable } from "../../../src/surface/docs/GuideTables.ts"

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
  Effect.runSync(Effect.all([readSettings, logLevel, logRequests]).pipe(Effect.withConfigProvider(recording)))
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
  it("has every setting that is read once, and no other but those of telemetry", () => {
    const own = documentedSettings.filter((name) => !name.startsWith("OTEL_"))
    const files = [...settingsTable().matchAll(/or `((?!OTEL_)\w+_FILE)`/g)].map(([, file = ""]) => file)
    expect(files).toContain("MASTER_KEYS_FILE")
    expect([...own, ...files].toSorted()).toEqual(namesRead().toSorted())
    expect(new Set(own).size).toBe(own.length)
  })

  it("says which settings production needs: a start without them names the same", () => {
    expect(
      refusals({ MODE: "production" })
        .filter((name) => !name.startsWith("PROVIDER_"))
        .toSorted()
    ).toEqual(documentedInProduction("required").toSorted())
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
    for (const [name, value] of [
      ["HOST", "127.0.0.1"],
      ["PORT", "8080"],
      ["ROLES", "all"],
      ["DELIVERY_LEASE_MARGIN", "5 seconds"],
      ["DELIVERY_POLL_INTERVAL", "1 second"],
      ["PROVIDER_TIMEOUT", "30 seconds"],
      ["DELIVERY_RETENTION", "30 days"]
    ] as const) {
      expect(table).toContain(`| \`${name}\` | \`${value}\` |`)
    }
    const rows = [...table.matchAll(/^\| `([A-Z_]+)` \| `([^`]+)` \|/gm)]
    expect(rows.length).toBeGreaterThan(30)
    for (const [, name = "", value = ""] of rows) expect(refusals({ [name]: value }), name).toEqual([])
  })

  it("writes bounds that are held: the least and the most are taken, and nothing beyond them", () => {
    const rows = [...settingsTable().matchAll(/^\| `([A-Z_]+)` \| [^|]+ \| (\d+) to (\d+) \|/gm)]
    expect(rows.length).toBeGreaterThan(10)
    for (const [, name = "", least, most] of rows) {
      for (const value of [Number(least), Number(most)]) expect(refusals({ [name]: String(value) }), name).toEqual([])
      for (const value of [Number(least) - 1, Number(most) + 1]) {
        expect(refusals({ [name]: String(value) }), name).toEqual([name])
      }
    }
    const durations = [...settingsTable().matchAll(/^\| `([A-Z_]+)` \| [^|]+ \| at least `([^`]+)` \|/gm)]
    expect(durations.length).toBeGreaterThan(10)
    for (const [, name = "", least = ""] of durations) {
      expect(refusals({ [name]: least }), name).toEqual([])
      expect(refusals({ [name]: "9 millis" }), name).toEqual([name])
    }
  })
})
