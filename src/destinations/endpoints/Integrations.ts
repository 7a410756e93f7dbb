import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import { Authentication } from "../../identity/Authentication.ts"
import { RequiredPermission } from "../../identity/keys/Permissions.ts"
import {
  errorSchema,
  errorSchemas,
  IdempotencyKeyReused,
  IdempotencyRequestInProgress,
  ServiceUnavailable
} from "../../platform/errors/Errors.ts"
import { EndpointId, OrganizationId } from "../../platform/kit/Ids.ts"
import { NoQuery, OptionalIdempotencyHeaders, OrganizationPath } from "../../platform/kit/Request.ts"

export const integrationGroup = <const Name extends string>(name: Name, description: string) =>
  HttpApiGroup.make(name)
    .addError(errorSchema(ServiceUnavailable))
    .middleware(Authentication)
    .annotate(OpenApi.Description, description)

const prefix = "/v2/organizations/:organizationId/integrations"

export const EndpointPath = Schema.Struct({ organizationId: OrganizationId, id: EndpointId })

/** The errors of a write's idempotency key, declared after its own. */
export const keyErrors = errorSchemas(IdempotencyKeyReused, IdempotencyRequestInProgress)

/** The shapes of the operations: reads, and writes that accept an idempotency key. A group sets the rest. */

export const integrationGet = <const Name extends string, const Path extends `/${string}`>(
  name: Name,
  path: Path,
  summary: string
) =>
  HttpApiEndpoint.get(name, `${prefix}${path}`)
    .setPath(OrganizationPath)
    .setUrlParams(NoQuery)
    .annotate(RequiredPermission, "webhook-endpoints:read")
    .annotate(OpenApi.Summary, summary)

const writing =
  <const Method extends "POST" | "PATCH" | "DELETE">(method: Method) =>
  <const Name extends string, const Path extends `/${string}`>(name: Name, path: Path, summary: string) =>
    HttpApiEndpoint.make(method)(name, `${prefix}${path}`)
      .setPath(OrganizationPath)
      .setUrlParams(NoQuery)
      .setHeaders(OptionalIdempotencyHeaders)
      .annotate(RequiredPermission, "webhook-endpoints:write")
      .annotate(OpenApi.Summary, summary)

export const integrationPost = writing("POST")
export const integrationPatch = writing("PATCH")
export const integrationDelete = writing("DELETE")
