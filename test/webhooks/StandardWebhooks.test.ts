import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { standardWebhooksSecretOf } from "../../src/engine/attempts/Signing.ts"
import { standardWebhooksSecret } from "../../src/webhooks/index.ts"
import { secret } from "./Deliveries.ts"

const guide = readFileSync(new URL("../../src/docs/guides/verifying.md", import.meta.url), "utf8")

describe("standardWebhooksSecret", () => {
  it("is what the service shows, and what the guide's line computes in a shell", () => {
    const shown = standardWebhooksSecretOf(secret)
    expect(standardWebhooksSecret(secret)).toBe(shown)
    const [, line = ""] = /```sh\n(printf .*)\n```/.exec(guide) ?? []
    const env = { ...process.env, WEBHOOK_SECRET: secret }
    expect(execFileSync("sh", ["-c", line], { encoding: "utf8", env })).toBe(`${shown}\n`)
  })

  it("refuses an empty secret, whose signatures anybody could make", () => {
    expect(() => standardWebhooksSecret("")).toThrow(TypeError)
  })

  it("refuses a secret that can't be right, since its form would hide that", () => {
    for (const bad of [`${secret}\n`, ` ${secret}`, `"${secret}"`, standardWebhooksSecret(secret)]) {
      expect(() => standardWebhooksSecret(bad)).toThrow(TypeError)
    }
  })
})
