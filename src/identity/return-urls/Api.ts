import { OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { ReturnUrl, writtenReturnUrl } from "../../platform/bounds/ReturnUrl.ts"
import {
  errorSchema,
  errorSchemas,
  OrganizationAccessDenied,
  PermissionDenied,
  ServiceUnavailable,
  WorkspaceAccessRequired
} from "../../platform/errors/Errors.ts"
import { described, strict } from "../../platform/kit/Request.ts"
import { WorkspaceEnvironment } from "../Schemas.ts"
import { sessionGet, sessionGroup, sessionPut } from "../SessionEndpoints.ts"

const Shown = Schema.NullOr(Schema.String)

export const ReturnUrlsRecord = Schema.Struct({
  environment: WorkspaceEnvironment,
  successUrl: described(Shown, "Where payers go after payment; null means the operator's page"),
  cancelUrl: described(Shown, "Where payers go who leave without paying; null means the operator's page"),
  updatedAt: described(Schema.NullOr(Schema.Date), "Null if they were never set")
}).annotations({ identifier: "ReturnUrls" })

/** A page, or null for the operator's. */
const Page = (description: string) => Schema.NullOr(ReturnUrl).annotations({ description })

export const SetReturnUrls = strict(
  Schema.Struct({
    successUrl: Page("Where payers go after payment; null means the operator's page"),
    cancelUrl: Page("Where payers go who leave without paying; null means the operator's page")
  }).annotations({ identifier: "SetReturnUrls" })
)
export type SetReturnUrls = typeof SetReturnUrls.Type

export const writtenReturnUrls = ({ cancelUrl, successUrl }: SetReturnUrls): SetReturnUrls => ({
  successUrl: successUrl === null ? null : writtenReturnUrl(new URL(successUrl)),
  cancelUrl: cancelUrl === null ? null : writtenReturnUrl(new URL(cancelUrl))
})

export class ReturnUrlsApi extends sessionGroup(
  "returnUrls",
  "Pages that payers return to from checkout",
  errorSchemas(WorkspaceAccessRequired, OrganizationAccessDenied, ServiceUnavailable)
)
  .add(
    sessionGet("get", "/identity/return-urls", "Read the selected environment's return URLs").addSuccess(
      ReturnUrlsRecord
    )
  )
  .add(
    sessionPut("set", "/identity/return-urls", "Set the selected environment's return URLs")
      .setPayload(SetReturnUrls)
      .addSuccess(ReturnUrlsRecord)
      .addError(errorSchema(PermissionDenied))
      .annotate(
        OpenApi.Description,
        "For owners and admins. Replaces both, for checkout sessions that are created from then on; null means the operator's page. In production they must be https. A page confirms nothing: whoever knows its address can open it."
      )
  ) {}
