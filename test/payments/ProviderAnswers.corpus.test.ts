import { Cause, Effect, FastCheck, Predicate } from "effect"
import type { ConnectedAccount, ProviderCall } from "../../src/payments/ProviderCall.ts"
import { isApiError } from "../../src/platform/errors/Errors.ts"
import { casesOf } from "../harness/Corpus.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { scripted } from "./ScriptedAdapter.ts"
import { replying } from "./ScriptedProvider.ts"

const account: ConnectedAccount = { environment: "sandbox", accountId: "acct_1" }

const statuses = [200, 201, 202, 301, 400, 401, 402, 403, 404, 409, 418, 429, 451, 499] as const

const anyJson = FastCheck.jsonValue({ maxDepth: 4 })

/** An answer that is no JSON object, as proxies, firewalls and gateways send them. */
const noObject = FastCheck.oneof(
  anyJson.filter((json) => !Predicate.isRecord(json)).map((json) => JSON.stringify(json)),
  FastCheck.constantFrom("true", "1", '"Forbidden"', '"Too Many Requests"', "null", "[]", "", "<html>", "{", "\u0000")
)

/** An error as Stripe forms it, but with anything in any of its fields. */
const anyError = FastCheck.oneof(
  anyJson,
  FastCheck.record(
    {
      type: FastCheck.oneof(
        FastCheck.constantFrom("card_error", "invalid_request_error", "idempotency_error"),
        anyJson
      ),
      code: FastCheck.oneof(FastCheck.constantFrom("resource_missing", "rate_limit", "account_invalid"), anyJson),
      param: anyJson,
      message: anyJson,
      decline_code: anyJson,
      network_decline_code: anyJson,
      advice_code: anyJson,
      detail: anyJson,
      headers: anyJson,
      doc_url: anyJson,
      charge: anyJson,
      payment_intent: anyJson
    },
    { requiredKeys: [] }
  )
).map((error) => JSON.stringify({ error }))

/** An object that is not the provider's, or only looks like one of its lists. */
const strangeObject = FastCheck.oneof(
  FastCheck.dictionary(FastCheck.string({ maxLength: 5 }), anyJson),
  FastCheck.record({ object: FastCheck.oneof(FastCheck.constant("list"), anyJson), data: anyJson, has_more: anyJson })
).map((json) => JSON.stringify(json))

const headers = { "content-type": "application/json", "stripe-should-retry": "false" }

const outcomesOf = (answers: ReadonlyArray<readonly [number, string]>) =>
  Effect.gen(function* () {
    const { behave, provider } = yield* scripted({ timeout: "20 seconds", concurrencyPerAccount: 10 })
    behave((call, response) => {
      const [status, body] = answers[Number(/prod_(\d+)/.exec(call.path)?.[1])] ?? [500, ""]
      replying(status, body, headers)(call, response)
    })
    return yield* Effect.forEach(
      answers,
      ([status, body], number) =>
        Effect.forEach(
          [
            provider.retrieveProduct(account, `prod_${number}`),
            provider.listProducts(account, { starting_after: `prod_${number}` })
          ] satisfies ReadonlyArray<ProviderCall<unknown>>,
          (call) =>
            Effect.map(Effect.exit(call), (exit) => ({
              answer: `${status} ${body}`,
              status,
              failure: exit._tag === "Success" ? undefined : Cause.squash(exit.cause),
              isDefect: exit._tag === "Failure" && Cause.isDie(exit.cause)
            }))
        ),
      { concurrency: 8 }
    ).pipe(Effect.map((pairs) => pairs.flat()))
  })

const sampled = (bodies: FastCheck.Arbitrary<string>, runs: number) =>
  FastCheck.sample(FastCheck.tuple(FastCheck.constantFrom(...statuses), bodies), casesOf(runs))

describe("whatever comes in the place of the provider's answer", () => {
  it.scopedLive("what is no JSON object is 502 provider_unavailable, whatever its status", function* () {
    for (const { answer, failure } of yield* outcomesOf(sampled(noObject, 400))) {
      expect(isApiError(failure) && failure.code, answer).toBe("provider_unavailable")
    }
  })

  it.scopedLive("an error with anything in any of its fields is one of the documented errors", function* () {
    for (const { answer, failure, isDefect, status } of yield* outcomesOf(sampled(anyError, 600))) {
      expect(isDefect, answer).toBe(false)
      if (status >= 300)
        expect(Predicate.isTagged(failure, "AccountAccessRevoked") || isApiError(failure), answer).toBe(true)
      if (isApiError(failure)) {
        expect(failure.code, answer).toMatch(/^[a-z0-9_]{1,90}$/)
        for (const field of failure.fields) expect(typeof field, answer).toBe("string")
      }
    }
  })

  it.scopedLive("an object that is not the provider's never makes a defect", function* () {
    const pages = ["list", "search_result"].map((object) => [200, JSON.stringify({ object, data: [null] })] as const)
    for (const { answer, failure, isDefect, status } of yield* outcomesOf([...sampled(strangeObject, 400), ...pages])) {
      expect(isDefect, answer).toBe(false)
      if (status >= 300) expect(isApiError(failure), answer).toBe(true)
    }
  })

  it.scopedLive("a parameter that is null is none", function* () {
    const body = JSON.stringify({ error: { type: "invalid_request_error", message: "c", code: null, param: null } })
    for (const { failure } of yield* outcomesOf([[400, body]])) {
      expect(failure).toMatchObject({ status: 422, code: "provider_invalid_request_error", fields: [] })
    }
  })
})
