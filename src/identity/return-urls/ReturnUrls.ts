import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer } from "effect"
import { refusal } from "../../platform/bounds/Refusals.ts"
import {
  PermissionDenied,
  ResourceNotFound,
  type ServiceUnavailable,
  ValidationFailed
} from "../../platform/errors/Errors.ts"
import { makeAudit } from "../../platform/kit/Audit.ts"
import type { Environment } from "../../platform/kit/Environment.ts"
import type { Author, Tenant } from "../../platform/kit/Tenant.ts"
import { orUnavailable, transaction } from "../../platform/storage/Database.ts"
import { entersEverything, makeMembersRepo } from "../members/MembersRepo.ts"
import { makeReturnUrlsRepo, type OwnReturnUrls, type ReturnUrlsShown } from "./ReturnUrlsRepo.ts"

export type { OwnReturnUrls } from "./ReturnUrlsRepo.ts"

const none: OwnReturnUrls = { successUrl: null, cancelUrl: null }

/** Payers of real money return over https; a shop under development may be on a developer's machine. */
const requireHttps = (environment: Environment, urls: OwnReturnUrls): Effect.Effect<void, ValidationFailed> => {
  const refused = (["successUrl", "cancelUrl"] as const).filter((field) => /^http:/i.test(urls[field] ?? ""))
  return environment === "sandbox" || refused.length === 0
    ? Effect.void
    : new ValidationFailed(refusal(new Map(refused.map((field) => [field, "must be an https URL in production"]))))
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const repo = yield* makeReturnUrlsRepo
  const audit = yield* makeAudit
  const memberships = yield* makeMembersRepo

  const ownOf = Effect.fn("ReturnUrls.ownOf")(function* (tenant: Tenant) {
    const [{ cancelUrl, successUrl } = none] = yield* repo.find(tenant)
    return { successUrl, cancelUrl }
  }, orUnavailable)

  const get = Effect.fn("ReturnUrls.get")(function* (tenant: Tenant) {
    const [found] = yield* repo.find(tenant)
    return found ?? { ...none, environment: tenant.environment, updatedAt: null }
  }, orUnavailable)

  const set = Effect.fn("ReturnUrls.set")(
    function* (tenant: Tenant, urls: OwnReturnUrls, author: Author) {
      const { environment, organizationId } = tenant
      yield* requireHttps(environment, urls)
      yield* memberships.lock(organizationId)
      const role = yield* memberships.roleOf(organizationId, author)
      if (!entersEverything(role)) {
        return yield* new PermissionDenied({ message: "Only owners and admins may set return URLs." })
      }
      const [before] = yield* repo.find(tenant)
      if (before === undefined) {
        return yield* new ResourceNotFound({ message: "There is no such organization." })
      }
      if (before.successUrl === urls.successUrl && before.cancelUrl === urls.cancelUrl) {
        return before
      }
      const [after = before] = yield* repo.set(tenant, urls)
      yield* audit({ organizationId, environment, author, action: "return_urls.updated", targetId: organizationId })
      return after
    },
    transaction(sql),
    orUnavailable
  )

  return { ownOf, get, set }
})

/** The pages that payers return to from checkout, by organization and environment (contract 4.3). */
export class ReturnUrls extends Context.Tag("connected-payments/identity/ReturnUrls")<
  ReturnUrls,
  {
    /** The organization's own pages, for its next checkout session. */
    readonly ownOf: (tenant: Tenant) => Effect.Effect<OwnReturnUrls, ServiceUnavailable>
    readonly get: (tenant: Tenant) => Effect.Effect<ReturnUrlsShown, ServiceUnavailable>
    /**
     * Replaces both pages, for sessions created from then on. For owners and admins, checked at the time of the change,
     * and the operator. In production both must be https. Audited if anything changes.
     */
    readonly set: (
      tenant: Tenant,
      urls: OwnReturnUrls,
      author: Author
    ) => Effect.Effect<ReturnUrlsShown, PermissionDenied | ResourceNotFound | ValidationFailed | ServiceUnavailable>
  }
>() {
  static readonly layer: Layer.Layer<ReturnUrls, never, SqlClient.SqlClient> = Layer.effect(ReturnUrls, make)
}
