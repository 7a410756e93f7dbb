import { describe, expect, it } from "@effect/vitest"
import { operations } from "../../../src/surface/contract/Api.ts"
import { operationsTable } from "../../../src/surface/docs/OperationsTable.ts"

const rows = operationsTable()
  .split("\n")
  .filter((line) => line.startsWith("| `"))

const rowOf = (operation: string) => rows.find((row) => row.startsWith(`| \`${operation}\` |`))?.split(" | ")

describe("the table of operations", () => {
  it("has each operation once", () => {
    expect(rows).toHaveLength(operations.length)
    expect(new Set(rows.map((row) => row.split(" | ")[0])).size).toBe(operations.length)
  })

  it("says what an operation needs and may answer", () => {
    expect(rowOf("POST P/refunds")?.slice(2)).toEqual(["`payments:write`", "required", "credential, provider |"])
    expect(rowOf("GET P/account")?.slice(2)).toEqual(["`payment-account:read`", "", "credential, provider |"])
    expect(rowOf("POST M/endpoints")?.at(-1)).toContain("`destination_rejected`")
    expect(rowOf("POST /webhooks/provider")?.slice(2)).toEqual(["", "", expect.stringContaining("`signature_invalid`")])
  })

  it("says shared errors once, above the rows", () => {
    const [every, credential, , provider] = operationsTable()
      .split("\n")
      .filter((line) => line.startsWith("- *"))
    expect(every).toContain("`validation_failed`")
    expect(credential).toContain("`api_key_invalid`")
    expect(provider).toContain("`provider_timeout`")
    expect(rows.join("\n")).not.toMatch(/`(validation_failed|api_key_invalid|internal_error)`/)
  })
})
