import { afterEach, beforeEach, describe, expect, it, vi } from "@effect/vitest"
import { AttemptErrorCode, refusedCode } from "../../src/engine/attempts/Outcome.ts"
import {
  answerRefused,
  fetchWebhookHandler,
  receiveWebhook,
  type WebhookHandlerOptions,
  WebhookVerificationError,
  type WebhookVerificationReason
} from "../../src/webhooks/index.ts"
import { body, organizationId, secret, signNow } from "./Deliveries.ts"

// What a consumer hears of a delivery that it refuses, and what the service makes of its answer

const delivery = "0199c0de-0000-7000-8000-00000000000d"
const options: WebhookHandlerOptions = { secret, organizationId, livemode: true, onEvent: () => {} }

const deliver = (change: Partial<WebhookHandlerOptions> = {}, id = delivery, key = secret) => {
  const headers: Record<string, string> = { "service-signature": signNow(body, key), "service-delivery-id": id }
  const request = { method: "POST", header: (name: string) => headers[name], body: async () => body }
  return receiveWebhook(request, { ...options, ...change })
}

describe("a refused delivery, where no onRefused is given", () => {
  const lines: Array<string> = []
  let elapsed = 0

  beforeEach(() => {
    lines.length = 0
    vi.useFakeTimers({ toFake: ["performance"] })
    // What the tests before have written must not keep this one's lines back
    elapsed += 3_600_000
    vi.advanceTimersByTime(elapsed)
    vi.spyOn(console, "error").mockImplementation((...line) => void lines.push(line.join(" ")))
  })

  afterEach(() => {
    vi.restoreAllMocks()
    vi.useRealTimers()
  })

  it("is reported with its reason and what to check, for an event of the sandbox at a receiver of production", async () => {
    expect((await deliver()).status).toBe(400)
    expect(lines).toEqual([expect.stringMatching(/wrong_environment.*`livemode`.*not retried automatically/)])
    expect(lines[0]).toContain(delivery)
  })

  it("is reported once a minute for each reason, with how many were not", async () => {
    for (let sent = 0; sent < 1000; sent++) await deliver()
    await deliver({}, delivery, "whsec_other")
    expect(lines.map((line) => /refused, (\w+)/.exec(line)?.[1])).toEqual(["wrong_environment", "signature_mismatch"])
    vi.advanceTimersByTime(60_000)
    await deliver()
    expect(lines).toHaveLength(3)
    expect(lines[2]).toContain("(and 999 more like it before)")
    vi.advanceTimersByTime(60_000)
    await deliver()
    expect(lines[3]).not.toContain("more like it")
  })

  it("leaves nothing of the request or the secret in the log", async () => {
    const forged = "x\u001b[2J\nWebhook delivery accepted".repeat(100)
    await deliver({ secret: "whsec_expected" }, forged, "whsec_forged")
    expect(lines).toHaveLength(1)
    for (const part of ["whsec_", "v1=", "accepted", "pi_1", "\u001b", "\n"]) expect(lines[0]).not.toContain(part)
    expect(lines[0]?.length).toBeLessThan(500)
  })

  it("is not reported where that is turned off, nor beside a function that is given", async () => {
    await deliver({ onRefused: false })
    const reasons: Array<string> = []
    await deliver({ onRefused: ({ reason }) => void reasons.push(reason) })
    expect([lines, reasons]).toEqual([[], ["wrong_environment"]])
  })

  it("is reported by a handler that was made without it", async () => {
    const headers = { "service-signature": signNow(body), "service-delivery-id": delivery }
    const request = new Request("http://consumer.example/", { method: "POST", body, headers })
    const response = await fetchWebhookHandler(options)(request)
    expect([response.status, response.headers.get("service-refused"), lines.length]).toEqual([400, "environment", 1])
  })
})

describe("the header of a refusing answer", () => {
  const reasons: Record<WebhookVerificationReason, AttemptErrorCode | undefined> = {
    missing_header: "consumer_refused_signature",
    malformed_header: "consumer_refused_signature",
    signature_mismatch: "consumer_refused_signature",
    timestamp_out_of_tolerance: "consumer_refused_time",
    malformed_body: undefined,
    unsupported_version: "consumer_refused_version",
    wrong_organization: "consumer_refused_organization",
    wrong_environment: "consumer_refused_environment",
    body_too_large: undefined
  }

  it.each(Object.entries(reasons))("for %s is what the service keeps as %s", (reason, code) => {
    const { headers } = answerRefused(new WebhookVerificationError(reason as WebhookVerificationReason))
    expect(refusedCode(headers["service-refused"])).toBe(code)
  })

  it("has a value for each code that the service keeps", () => {
    const kept = AttemptErrorCode.literals.filter((code) => code.startsWith("consumer_refused_"))
    expect(new Set(Object.values(reasons).filter((code) => code !== undefined))).toEqual(new Set(kept))
  })
})
