import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { parse, stringify } from "yaml"

// The alert rules: once in Prometheus' form, from which Grafana's is written

const root = new URL("../../", import.meta.url).pathname
const text = (file: string) => readFileSync(join(root, file), "utf8")
const rulesFile = "src/operating/monitoring/prometheus-alerts.yaml"
const ruleTests = ["test/operating/prometheus-alerts.test.yaml", "test/operating/prometheus-alerts-of-weeks.test.yaml"]

const Rules = Schema.Struct({
  groups: Schema.Tuple(
    Schema.Struct({
      name: Schema.String,
      interval: Schema.String,
      rules: Schema.Array(
        Schema.Struct({
          alert: Schema.String,
          expr: Schema.String,
          for: Schema.optionalWith(Schema.String, { default: () => "0s" }),
          labels: Schema.Struct({ severity: Schema.Literal("critical", "warning") }),
          annotations: Schema.Struct({ summary: Schema.String, description: Schema.String })
        })
      )
    })
  )
})

const [group] = Schema.decodeUnknownSync(Rules)(parse(text(rulesFile))).groups

/** The source of data is a variable, which provisioning reads from Grafana's environment. */
const grafanaForm = stringify(
  {
    apiVersion: 1,
    groups: [
      {
        orgId: 1,
        name: group.name,
        folder: group.name,
        interval: group.interval,
        rules: group.rules.map(({ alert, annotations, expr, for: pending, labels }) => ({
          uid: alert
            .toLowerCase()
            .replaceAll(/[^a-z0-9]+/g, "-")
            .slice(0, 40),
          title: alert,
          condition: "B",
          for: pending,
          noDataState: "OK",
          execErrState: "Error",
          labels,
          annotations,
          data: [
            {
              refId: "A",
              // As far back as the longest range of any rule
              relativeTimeRange: { from: 604_800, to: 0 },
              datasourceUid: "$PROMETHEUS_DATASOURCE_UID",
              model: { refId: "A", instant: true, expr }
            },
            {
              refId: "B",
              datasourceUid: "__expr__",
              model: {
                refId: "B",
                type: "threshold",
                expression: "A",
                conditions: [{ evaluator: { type: "gt", params: [0] } }]
              }
            }
          ]
        }))
      }
    ]
  },
  { lineWidth: 0, aliasDuplicateObjects: false }
)

const promtool = (...args: ReadonlyArray<string>) => {
  const { status, stderr, stdout } = spawnSync("promtool", args, { cwd: root, encoding: "utf8" })
  expect(status, stdout + stderr).toBe(0)
}

describe("the alert rules", () => {
  it.skipIf(spawnSync("promtool", ["--version"]).error !== undefined)(
    "are Prometheus' own, and each fires for one installation and not for another (skipped without promtool)",
    () => {
      promtool("check", "rules", rulesFile)
      promtool("test", "rules", ...ruleTests)
    }
  )

  it("are each tried, and each has its paragraph in the guide", () => {
    const tried = ruleTests.map(text).join("\n")
    const guide = text("src/docs/guides/operating.md")
    for (const { alert } of group.rules) {
      expect(tried).toContain(`alertname="${alert.replaceAll("'", "''")}",installation="bad"`)
      expect(guide).toContain(`### ${alert}\n`)
    }
  })

  it("are the same in Grafana's form (`vitest run test/operating/Alerts.test.ts --update` writes it)", async () => {
    const head = "# Written from prometheus-alerts.yaml. Set PROMETHEUS_DATASOURCE_UID in Grafana's environment.\n"
    await expect(head + grafanaForm).toMatchFileSnapshot(join(root, "src/operating/monitoring/grafana-alerts.yaml"))
  })
})
