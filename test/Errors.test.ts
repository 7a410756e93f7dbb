import { HttpApiSchema } from "@effect/platform"
import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, FastCheck, Schema } from "effect"
import {
  type ApiError,
  type DocumentedErrorClass,
  documentedErrors,
  errorBody,
  errorSchema,
  InternalError,
  isApiError
} from "../src/platform/errors/Errors.ts"

/** The contract's and the decisions' tables of codes, row by row. */
const table: ReadonlyArray<readonly [code: string, status: number]> = [
  ["authentication_required", 401],
  ["api_key_invalid", 401],
  ["session_invalid", 401],
  ["organization_access_denied", 403],
  ["permission_denied", 403],
  ["endpoint_management_forbidden", 403],
  ["workspace_access_required", 403],
  ["origin_not_trusted", 403],
  ["resource_not_found", 404],
  ["method_not_allowed", 405],
  ["organization_already_exists", 409],
  ["organization_not_empty", 409],
  ["provider_account_not_connected", 409],
  ["account_taken", 409],
  ["account_onboarding_unavailable", 409],
  ["account_oauth_unavailable", 409],
  ["idempotency_key_reused", 409],
  ["idempotency_request_in_progress", 409],
  ["endpoint_limit_reached", 409],
  ["api_key_limit_reached", 409],
  ["checkout_page_limit_reached", 409],
  ["delivery_not_failed", 409],
  ["delivery_retry_limit_reached", 409],
  ["delivery_window_expired", 409],
  ["endpoint_deleted", 409],
  ["recovery_in_progress", 409],
  ["replay_in_progress", 409],
  ["endpoint_paused", 409],
  ["test_environment_required", 409],
  ["request_timeout", 408],
  ["payload_too_large", 413],
  ["unsupported_media_type", 415],
  ["validation_failed", 422],
  ["headers_too_large", 431],
  ["event_type_not_subscribed", 422],
  ["destination_rejected", 422],
  ["destination_unresolvable", 422],
  ["integration_filter_invalid", 422],
  ["integration_filter_unknown", 422],
  ["rate_limit_exceeded", 429],
  ["image_quota_exceeded", 429],
  ["test_rate_limit_exceeded", 429],
  ["signature_invalid", 400],
  ["provider_<provider code>", 422],
  ["provider_<provider code>", 402],
  ["provider_resource_missing", 404],
  ["provider_operation_unsupported", 501],
  ["provider_unavailable", 502],
  ["provider_outcome_unknown", 502],
  ["provider_permission_denied", 502],
  ["provider_rate_limited", 503],
  ["provider_timeout", 504],
  ["service_unavailable", 503],
  ["internal_error", 500]
]

/** The codes whose answers carry `Retry-After` whoever raises them. */
const retryable = [
  "idempotency_request_in_progress",
  "rate_limit_exceeded",
  "test_rate_limit_exceeded",
  "provider_rate_limited",
  "service_unavailable"
]

const isOpenCode = (code: string) => code.includes("<")

const encoded = <A extends ApiError>(errorClass: DocumentedErrorClass<A>, error: A) =>
  Schema.encodeSync(errorSchema(errorClass))(error)

describe("the documented errors", () => {
  it("are those of the contract, each with its status and no other", () => {
    const documented = documentedErrors.map(({ documentation }) => [documentation.code, documentation.status])
    expect(documented.toSorted()).toEqual(table.map(([code, status]) => [code, status]).toSorted())
    expect(new Set(documentedErrors.map(({ tag }) => tag)).size).toBe(documentedErrors.length)
  })

  it("carry Retry-After where the contract promises it", () => {
    const withRetryAfter = documentedErrors.map((errorClass) => new errorClass()).filter((e) => e.retryAfter !== null)
    expect(withRetryAfter.map(({ code }) => code).toSorted()).toEqual(retryable.toSorted())
    for (const { code, retryAfter } of withRetryAfter) {
      expect(retryAfter === null ? 0 : Duration.toSeconds(retryAfter), code).toBeGreaterThanOrEqual(1)
    }
  })

  it("are told from other values", () => {
    for (const errorClass of documentedErrors) expect(isApiError(new errorClass())).toBe(true)
    for (const other of [undefined, null, "x", new Error("x"), { status: 500, code: "internal_error" }]) {
      expect(isApiError(other)).toBe(false)
    }
  })
})

describe.each(documentedErrors.map((errorClass) => [errorClass.tag, errorClass] as const))("%s", (_, errorClass) => {
  const { documentation } = errorClass
  const code = isOpenCode(documentation.code) ? "provider_card_declined" : documentation.code

  it("has exactly the four keys on the wire", () => {
    const cause = new Error("select secret from table")
    const error = new errorClass({ code, fields: ["a.0.b"], cause, requestId: "req_1" })
    const body = { error: documentation.message, code, fields: ["a.0.b"], requestId: "req_1" }
    expect(encoded(errorClass, error)).toEqual(body)
    expect(errorBody(error, "req_2")).toEqual({ ...body, requestId: "req_2" })
    expect(error.cause).toBe(cause)
  })

  it("has no fields where none apply", () => {
    expect(encoded(errorClass, new errorClass({ code })).fields).toEqual([])
  })

  it("declares its status to the documents and the client", () => {
    expect(HttpApiSchema.getStatusError(errorSchema(errorClass))).toBe(documentation.status)
    expect(new errorClass().status).toBe(documentation.status)
  })

  it("comes back from the wire as itself", () => {
    FastCheck.assert(
      FastCheck.property(
        FastCheck.string(),
        FastCheck.array(FastCheck.string()),
        FastCheck.string(),
        (message, fields, requestId) => {
          const error = new errorClass({ message, fields, requestId, code })
          const back = Schema.decodeUnknownSync(errorSchema(errorClass))(
            JSON.parse(JSON.stringify(encoded(errorClass, error)))
          )
          expect(back).toBeInstanceOf(errorClass)
          const said = ({ code, fields, message, requestId, status }: ApiError) => ({
            code,
            fields,
            message,
            requestId,
            status
          })
          expect(said(back)).toEqual(said(error))
        }
      )
    )
  })

  it("does not take another error's body for its own", () => {
    const body = { error: "x", code: "some_other_code", fields: [], requestId: "r" }
    expect(() => Schema.decodeUnknownSync(errorSchema(errorClass))(body)).toThrow()
  })

  it("says something to people, without a secret, SQL or a stack", () => {
    expect(documentation.message).toMatch(/^[A-Z].{10,}[.`]$/)
    expect(documentation.message).not.toMatch(
      /(sk|rk|pk)_(test|live)_|whsec_|postgres|SELECT |INSERT |https?:|\bat .+:\d+|Error:|\/src\//i
    )
  })
})

describe("an internal error", () => {
  it.effect("never says its cause", () =>
    Effect.sync(() => {
      const error = new InternalError({ cause: new Error("password=hunter2") })
      expect(JSON.stringify(errorBody(error, "req_1"))).not.toContain("hunter2")
    })
  )
})
