import { randomUUID } from "node:crypto"
import { Context, Effect } from "effect"
import { Accounts } from "../../../src/payments/Accounts.ts"
import { type LogLine, LogLines } from "../../../src/platform/telemetry/LogLines.ts"
import { createMigratedDatabase } from "../../harness/TestDatabase.ts"
import { expect, it } from "../../harness/Tests.ts"
import { makeScriptedProvider, replying } from "../../payments/ScriptedProvider.ts"
import { makeOrganization, providerAt, startService } from "./StartedService.ts"

const secret = "sk_test_4eC39HqLyjWDarjtT1zdp7dc"

/** A service with a log of the test's own, before a provider that answers as it is told. */
const scene = Effect.gen(function* () {
  const scripted = yield* makeScriptedProvider
  const lines: Array<LogLine> = []
  const { url: databaseUrl } = yield* createMigratedDatabase
  const service = yield* startService({ databaseUrl, provider: providerAt(scripted.url, secret) }).pipe(
    Effect.provideService(LogLines, { writes: () => true, requests: true, write: (line) => void lines.push(line) })
  )
  const { id, key } = yield* makeOrganization(service.services, { name: "refused" })
  scripted.behave((call, response) =>
    call.path.startsWith("/v1/charges")
      ? replying(200, { object: "list", data: [], has_more: false })(call, response)
      : replying(200, { id: "acct_1", object: "account", charges_enabled: true, payouts_enabled: true })(call, response)
  )
  yield* Context.get(service.services, Accounts).link({ organizationId: id, environment: "sandbox" }, "acct_1")
  const refund = (status: number, error: Readonly<Record<string, unknown>>, requestId: string) =>
    Effect.gen(function* () {
      scripted.behave(
        replying(status, { error: { message: `About ${secret}`, ...error } }, { "request-id": requestId })
      )
      lines.length = 0
      const answer = yield* service.request("POST", `/v2/organizations/${id}/provider/refunds`, {
        key,
        headers: { "idempotency-key": randomUUID() },
        body: { charge: "ch_1234" }
      })
      const line = lines.find(({ attributes }) => attributes["request.id"] === answer.headers.get("request-id"))
      return { answer, attributes: line?.attributes, written: JSON.stringify(lines) }
    })
  return { refund, scripted, service, id, key, lines }
})

it.scopedLive("a provider's refusal is in the answer in words, and in the log line by its id and codes", function* () {
  const { id, key, lines, refund, scripted, service } = yield* scene
  const declined = yield* refund(
    402,
    { type: "card_error", code: "card_declined", decline_code: "insufficient_funds", network_decline_code: "51" },
    "req_declined1"
  )
  expect(declined.answer.status, declined.answer.text).toBe(402)
  expect(declined.answer.json).toEqual({
    error:
      "The payment provider refused the payment: the card has insufficient funds. The provider's id of the request is req_declined1.",
    code: "provider_insufficient_funds",
    fields: [],
    requestId: declined.answer.headers.get("request-id")
  })
  expect(declined.attributes).toMatchObject({
    "api.error.code": "provider_insufficient_funds",
    "provider.request_id": "req_declined1",
    "provider.error_type": "card_error",
    "provider.error_code": "card_declined",
    "provider.decline_code": "insufficient_funds",
    "provider.network_decline_code": "51"
  })
  const refused = yield* refund(400, { type: "invalid_request_error", code: "charge_disputed" }, "req_disputed1")
  expect([refused.answer.status, refused.answer.json["error"]]).toEqual([
    422,
    "The payment provider refused the request: the charge is disputed by its payer, and can't be refunded. The provider's id of the request is req_disputed1."
  ])
  expect(refused.attributes).toMatchObject({
    "provider.request_id": "req_disputed1",
    "provider.error_code": "charge_disputed"
  })
  // What a proxy may send in place of the id is neither shown nor logged
  const odd = yield* refund(403, { type: "invalid_request_error", code: "more_permissions_required" }, secret)
  expect([odd.answer.status, odd.answer.json["code"]]).toEqual([502, "provider_permission_denied"])
  for (const { answer, written } of [declined, refused, odd]) {
    expect(answer.text).not.toContain(secret)
    expect(written).not.toContain(secret)
  }
  scripted.behave(replying(200, { id: "ch_1234", object: "charge" }, { "request-id": "req_fine" }))
  lines.length = 0
  yield* service.request("GET", `/v2/organizations/${id}/provider/charges/ch_1234`, { key })
  expect(lines).toHaveLength(1)
  expect(JSON.stringify(lines)).not.toContain("req_fine")
})
