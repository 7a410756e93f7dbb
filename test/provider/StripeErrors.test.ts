import { describe, expect, it } from "@effect/vitest"
import { Duration, FastCheck } from "effect"
import Stripe from "stripe"
import { isApiError } from "../../src/errors/Errors.ts"
import { errorAttributes } from "../../src/errors/ProviderAnswer.ts"
import { AccountAccessRevoked } from "../../src/provider/ProviderErrors.ts"
import { inOurNames, pathIdNames } from "../../src/provider/RefusedFields.ts"
import { dottedPath, fromStripeError } from "../../src/provider/stripe/StripeErrors.ts"

const leak = "The key sk_test_4eC3****9QcK does not have access"

type Raw = Parameters<typeof Stripe.errors.generateV1Error>[0]

/** The error that the package itself makes of an answer of the provider's. */
const answered = (statusCode: number, error: Omit<Raw, "type"> & { readonly type?: string }, headers = {}) =>
  // The package's type of `type` lists the kinds it knows; the wire may carry others
  Stripe.errors.generateV1Error({ type: "invalid_request_error", message: leak, ...error, statusCode, headers } as Raw)

const said = (thrown: unknown) => {
  const { error } = fromStripeError(thrown, "acct_1")
  return isApiError(error)
    ? { status: error.status, code: error.code, fields: error.fields }
    : { revoked: error.accountId }
}

describe("an error of the provider's", () => {
  it.each([
    [
      "400 with a parameter and a code",
      answered(400, { code: "parameter_invalid_integer", param: "unit_amount" }),
      422,
      "provider_parameter_invalid_integer",
      ["unit_amount"]
    ],
    [
      "400 with a nested parameter",
      answered(400, { code: "resource_missing", param: "line_items[0][price]" }),
      422,
      "provider_resource_missing",
      ["line_items.0.price"]
    ],
    ["400 without a code", answered(400, { param: "currency" }), 422, "provider_invalid_request_error", ["currency"]],
    ["400 without a code or a parameter", answered(400, {}), 422, "provider_invalid_request_error", []],
    ["400 with a code that is none", answered(400, { code: "Sorry! <b>no</b>" }), 422, "provider_error", []],
    [
      "404 of an object",
      answered(404, { code: "resource_missing", param: "id" }),
      404,
      "provider_resource_missing",
      ["id"]
    ],
    ["404 of anything else", answered(404, {}), 502, "provider_unavailable", []],
    ["400 of a reused key", answered(400, { type: "idempotency_error" }), 409, "idempotency_key_reused", []],
    [
      "409 of a key in use",
      answered(409, { type: "idempotency_error", code: "idempotency_key_in_use" }),
      409,
      "idempotency_request_in_progress",
      []
    ],
    ["409 of anything else", answered(409, {}), 502, "provider_unavailable", []],
    ["401", answered(401, {}), 502, "provider_unavailable", []],
    [
      "402 with a decline code",
      answered(402, { type: "card_error", code: "card_declined", decline_code: "insufficient_funds" }),
      402,
      "provider_insufficient_funds",
      []
    ],
    [
      "402 without a decline code",
      answered(402, { type: "card_error", code: "expired_card" }),
      402,
      "provider_expired_card",
      []
    ],
    ["402 without any code", answered(402, { type: "card_error" }), 402, "provider_card_error", []],
    ["403 of another kind", answered(403, { code: "permission_denied" }), 502, "provider_permission_denied", []],
    ["429", answered(429, { code: "rate_limit" }), 503, "provider_rate_limited", []],
    ["429 of a lock", answered(429, { code: "lock_timeout" }), 503, "provider_rate_limited", []],
    ["a rate limit that comes with 400", answered(400, { code: "rate_limit" }), 503, "provider_rate_limited", []],
    ["500", answered(500, { type: "api_error" }), 502, "provider_unavailable", []],
    ["503", answered(503, { type: "api_error" }), 502, "provider_unavailable", []],
    [
      "an answer that is no JSON",
      new Stripe.errors.StripeAPIError({ type: "api_error", message: leak }),
      502,
      "provider_unavailable",
      []
    ],
    [
      "a lost connection",
      new Stripe.errors.StripeConnectionError({ type: "api_error", message: leak }),
      502,
      "provider_unavailable",
      []
    ],
    ["a bare TypeError", new TypeError(leak), 502, "provider_unavailable", []],
    ["a thrown text", leak, 502, "provider_unavailable", []],
    ["nothing at all", undefined, 502, "provider_unavailable", []]
  ])("%s is answered as documented", (_, thrown, status, code, fields) => {
    expect(said(thrown)).toEqual({ status, code, fields })
  })

  it("of silence is a time-out", () => {
    const detail = Object.assign(new Error("aborted"), { code: "ETIMEDOUT" })
    // `detail` is an Error on the wire's own path, which the constructor's type does not say
    const thrown = new Stripe.errors.StripeConnectionError({ type: "api_error", detail } as unknown as Raw)
    expect(said(thrown)).toEqual({ status: 504, code: "provider_timeout", fields: [] })
  })

  it("of revoked access is no answer yet: it is to be confirmed", () => {
    const { error } = fromStripeError(answered(403, { code: "account_invalid" }), "acct_1")
    expect(error).toBeInstanceOf(AccountAccessRevoked)
    expect(error).toMatchObject({ accountId: "acct_1" })
  })

  it.each([
    [{ "retry-after": "7" }, 7],
    [{ "retry-after": "100000" }, 300],
    [{}, 1],
    [{ "retry-after": "soon" }, 1],
    [{ "retry-after": "-5" }, 1],
    [{ "retry-after": "Infinity" }, 1]
  ])("of too many requests with %j waits %d s", (headers, seconds) => {
    const { error } = fromStripeError(answered(429, {}, headers), "acct_1")
    const retryAfter = isApiError(error) ? error.retryAfter : null
    expect(retryAfter === null ? null : Duration.toSeconds(retryAfter)).toBe(seconds)
  })

  it("keeps the provider's request id and the issuer's reason for operators, and says in words what helps the caller", () => {
    const declined = answered(402, {
      type: "card_error",
      code: "card_declined",
      decline_code: "insufficient_funds",
      network_decline_code: "51",
      advice_code: "try_again_later",
      requestId: "req_Q1w2E3r4"
    } as Parameters<typeof answered>[1])
    const { error } = fromStripeError(declined, "acct_1")
    if (!isApiError(error)) throw new Error("The account was not revoked")
    expect(errorAttributes(error)).toEqual({
      "api.error.code": "provider_insufficient_funds",
      "provider.request_id": "req_Q1w2E3r4",
      "provider.error_type": "card_error",
      "provider.error_code": "card_declined",
      "provider.decline_code": "insufficient_funds",
      "provider.network_decline_code": "51"
    })
    expect(error.message).toBe(
      "The payment provider refused the payment: the card has too little on it. It may work later. The provider's id of the request is req_Q1w2E3r4."
    )
  })

  it.each([
    ["stolen_card", "req_1"],
    ["fraudulent", "sk_test_4eC3"],
    ["some_new_reason", undefined]
  ])("of the reason %s with the id %s says nothing to a payer that only the account should know", (reason, id) => {
    const raw = { type: "card_error", code: "card_declined", decline_code: reason, requestId: id }
    const { error } = fromStripeError(answered(402, raw as Parameters<typeof answered>[1]), "acct_1")
    expect(error.message).not.toMatch(/stolen|fraud|sk_test/)
    expect(error.message.includes("The provider's id of the request is")).toBe(id === "req_1")
  })

  it("whose field is renamed keeps what the provider said of it", () => {
    const raw = { code: "resource_missing", param: "subscription", requestId: "req_7" }
    const failure = fromStripeError(answered(404, raw as Parameters<typeof answered>[1]), "acct_1").error
    const { error } = fromStripeError(answered(400, raw as Parameters<typeof answered>[1]), "acct_1")
    for (const one of [failure, error]) {
      const renamed = inOurNames(pathIdNames)(one)
      expect(isApiError(renamed) && errorAttributes(renamed)).toMatchObject({ "provider.request_id": "req_7" })
    }
    expect(inOurNames(pathIdNames)(error)).toMatchObject({
      fields: ["id"],
      message: expect.stringMatching(/^`id` names no object .* The provider's id of the request is req_7\.$/)
    })
  })

  it("never brings its message along, not even for operators", () => {
    for (const status of [400, 401, 402, 403, 404, 409, 429, 500]) {
      const { error, facts } = fromStripeError(answered(status, { code: "some_code" }), "acct_1")
      const everything = JSON.stringify([error, facts, isApiError(error) ? error.cause : null, String(error)])
      expect(everything).not.toContain("sk_test")
    }
  })
})

describe("a parameter's name", () => {
  it.each([
    ["unit_amount", "unit_amount"],
    ["line_items[0][price]", "line_items.0.price"],
    ["recurring[interval]", "recurring.interval"],
    ["metadata[order][]", "metadata.order"]
  ])("%s is %s", (param, dotted) => {
    expect(dottedPath(param)).toBe(dotted)
  })

  it("has the same parts, whatever they are", () => {
    const part = FastCheck.stringMatching(/^[a-z0-9_]{1,12}$/)
    FastCheck.assert(
      FastCheck.property(part, FastCheck.array(part), (first, rest) => {
        expect(dottedPath(`${first}${rest.map((name) => `[${name}]`).join("")}`)).toBe([first, ...rest].join("."))
      })
    )
  })
})
