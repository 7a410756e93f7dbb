import { HttpServerResponse } from "@effect/platform"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { wordsOfVisit } from "../../../src/console/pages/account/visits.ts"
import { afterVisit, type Visit } from "../../../src/payments/connecting/ConnectingPage.ts"

const answered = (...visit: Parameters<typeof afterVisit>) => HttpServerResponse.toWeb(afterVisit(...visit))

const consoleUrl = "https://payments.example/console"

const visits: ReadonlyArray<Visit> = [
  { of: "onboarding", ended: "returned" },
  { of: "onboarding", ended: "expired" },
  ...(["connected", "denied", "expired", "taken", "refused", "unusable", "failed", "unavailable"] as const).map(
    (ended): Visit => ({ of: "oauth", ended })
  )
]

describe("after a visit to the provider", () => {
  it.each(visits)("the browser goes on to the console, if there is one ($of, $ended)", (visit) => {
    const { headers, status } = answered(consoleUrl, "production", visit)
    expect(status).toBe(303)
    expect(headers.get("location")).toBe(`${consoleUrl}/production/account?${visit.of}=${visit.ended}`)
    expect(headers.get("cache-control")).toBe("no-store")
    expect(headers.get("referrer-policy")).toBe("no-referrer")
  })

  it.effect.each(visits)("it gets a page without one, which says in which mode it was ($of, $ended)", (visit) =>
    Effect.promise(async () => {
      const sandbox = await answered(null, "sandbox", visit).text()
      const production = await answered(null, "production", visit).text()
      expect(sandbox).toMatch(/<h1>.+<\/h1>/)
      expect(sandbox).toContain("Test mode")
      expect(production).not.toContain("Test mode")
      expect(sandbox).not.toMatch(/<script|<form|href="http/)
    })
  )

  it("it gets a page where the environment is not known, or nobody is signed in", () => {
    expect(answered(consoleUrl, null, { of: "onboarding", ended: "returned" }).status).toBe(200)
    expect(answered(consoleUrl, "sandbox", { of: "oauth", ended: "signed_out" }).status).toBe(401)
    const limited = answered(consoleUrl, null, { of: "oauth", ended: "limited", retrySeconds: 7 })
    expect([limited.status, limited.headers.get("retry-after")]).toEqual([429, "7"])
  })

  const claim = /not(hing was| be)? connected|can(&#39;|')t be connected/i
  const isKnown = ({ ended, of }: Visit) => of === "oauth" && ["denied", "taken", "refused", "unusable"].includes(ended)

  it.each([...visits, { of: "oauth", ended: "signed_out" } as const])(
    "no page says that nothing was connected unless that is known ($of, $ended)",
    async (visit) => {
      expect(claim.test(await answered(null, "sandbox", visit).text())).toBe(isKnown(visit))
    }
  )

  it.each(visits)("the console has words for it, which claim no more than is known ($of, $ended)", (visit) => {
    const words = wordsOfVisit(visit.of, visit.ended)
    expect(words).toBeDefined()
    expect(claim.test(words?.text ?? "") && !isKnown(visit)).toBe(false)
  })
})
