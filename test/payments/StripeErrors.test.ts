import { describe, expect, it } from "@effect/vitest"
import { Duration, FastCheck } from "effect"
import Stripe from "stripe"
import { inOurNames, pathIdNames } from "../../src/payments/RefusalReasons.ts"
import { dottedPath, fromStripeError } from "../../src/payments/stripe/StripeErrors.ts"
import { isApiError } from "../../src/platform/errors/Errors.ts"
import { errorAttributes } from "../../src/platform/errors/ProviderAnswer.ts"

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
    ["400 without a code or a parameter", answered(400, {}), 422, "provider_invalid_request_error", []],
    ["400 with a code that is none", answered(400, { code: "Sorry! <b>no</b>" }), 422, "provider_error", []],
    ["404 of anything else", answered(404, {}), 502, "provider_unavailable", []],
    ["409 of anything else", answered(409, {}), 502, "provider_unavailable", []],
    [
      "402 without a decline code",
      answered(402, { type: "card_error", code: "expired_card" }),
      402,
      "provider_expired_card",
      []
    ],
    ["402 without any code", answered(402, { type: "card_error" }), 402, "provider_card_error", []],
    ["429 of a lock", answered(429, { code: "lock_timeout" }), 503, "provider_rate_limited", []],
    ["a rate limit that comes with 400", answered(400, { code: "rate_limit" }), 503, "provider_rate_limited", []],
    ["a bare TypeError", new TypeError(leak), 502, "provider_unavailable", []],
    ["a thrown text", leak, 502, "provider_unavailable", []],
    ["nothing at all", undefined, 502, "provider_unavailable", []]
  ])("%s is answered as documented", (_, thrown, status, code, fields) => {
    expect(said(thrown)).toEqual({ status, code, fields })
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
      "The payment provider refused the payment: the card has insufficient funds. It may work later. The provider's id of the request is req_Q1w2E3r4."
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
      message: expect.stringMatching(
        /^`id` in the path names no object .* The provider's id of the request is req_7\.$/
      )
    })
  })
})

describe("a parameter's name", () => {
  it("has the same parts, whatever they are", () => {
    const part = FastCheck.stringMatching(/^[a-z0-9_]{1,12}$/)
    FastCheck.assert(
      FastCheck.property(part, FastCheck.array(part), (first, rest) => {
        expect(dottedPath(`${first}${rest.map((name) => `[${name}]`).join("")}`)).toBe([first, ...rest].join("."))
      })
    )
  })
})
