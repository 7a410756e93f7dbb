import { describe, expect, it } from "@effect/vitest"
import { firstRequest, permissionRows } from "../../src/console/pages/keys/permissions.ts"
import { pageOf, searchesOf } from "../../src/console/pages/search/terms.ts"
import { operations } from "../../src/surface/contract/Api.ts"

describe("the text of the search field", () => {
  it("is an id with a page", () => {
    const event = `svc_evt_${"0a".repeat(32)}`
    expect(["pi_3Q1w2E", "cs_test_1", "prod_1", event, "svc_test_evt_abc-1"].map(pageOf)).toEqual([
      "/payments/pi_3Q1w2E",
      "/payments/cs_test_1",
      "/products/prod_1",
      `/events/${event}`,
      "/events/svc_test_evt_abc-1"
    ])
    expect(["svc_evt_12", "../keys", `pi_${"a".repeat(300)}`, "order-77"].map(pageOf)).toEqual(Array(4).fill(undefined))
  })

  it("is an address, or a reference that may be an amount, too", () => {
    expect(searchesOf("ana@shop.example")).toEqual([{ email: "ana@shop.example" }])
    expect(searchesOf("order-77")).toEqual([{ client_reference_id: "order-77" }])
    const amounts = ["49,90", "R$49.90", "1500 JPY", "eur 5", "1500"].map((text) => searchesOf(text)[1])
    expect(amounts).toEqual([
      { amount: 4990 },
      { amount: 4990 },
      { amount: 1500, currency: "jpy" },
      { amount: 500, currency: "eur" },
      { amount: 150_000 }
    ])
    for (const none of ["1,234,567", "12.345", "a1b", "-5"]) expect(searchesOf(none), none).toHaveLength(1)
  })
})

describe("a key's permissions", () => {
  it("are explained by the operations that need them, and its first request needs none that it lacks", () => {
    for (const { permission, words } of permissionRows) {
      expect(words, permission).not.toBe("")
      const path = firstRequest([permission])
      const first = operations.find((operation) => operation.method === "GET" && operation.path === path)
      expect([permission, undefined], permission).toContain(first?.permission)
    }
    expect(permissionRows.find(({ permission }) => permission === "transactions:read")?.words).toBe(
      "Balance transactions"
    )
    expect(permissionRows.find(({ permission }) => permission === "payment-account:read")?.words).toContain("payouts")
  })
})
