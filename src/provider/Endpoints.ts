import { HttpApiEndpoint, OpenApi } from "@effect/platform"
import { type Permission, RequiredPermission } from "../identity/keys/Permissions.ts"
import {
  IdempotencyHeaders,
  NoQuery,
  OptionalIdempotencyHeaders,
  OrganizationPath,
  ProviderObjectPath
} from "../kit/Request.ts"
import { ProviderObject, ProviderPage } from "./Schemas.ts"

/** The shapes of most operations on the provider's objects; a group sets the rest on the endpoint. */

/** `list`: a page of objects; the group adds the query. */
export const providerList = <const Path extends `/${string}`>(path: Path, permission: Permission, summary: string) =>
  HttpApiEndpoint.get("list", path)
    .setPath(OrganizationPath)
    .addSuccess(ProviderPage)
    .annotate(RequiredPermission, permission)
    .annotate(OpenApi.Summary, summary)

/** `get`: one object by its id. */
export const providerGet = <const Path extends `/${string}`>(path: Path, permission: Permission, summary: string) =>
  HttpApiEndpoint.get("get", path)
    .setPath(ProviderObjectPath)
    .setUrlParams(NoQuery)
    .addSuccess(ProviderObject)
    .annotate(RequiredPermission, permission)
    .annotate(OpenApi.Summary, summary)

/** `create`: requires an idempotency key; the group adds the body. */
export const providerCreate = <const Path extends `/${string}`>(path: Path, permission: Permission, summary: string) =>
  HttpApiEndpoint.post("create", path)
    .setPath(OrganizationPath)
    .setUrlParams(NoQuery)
    .setHeaders(IdempotencyHeaders)
    .addSuccess(ProviderObject)
    .annotate(RequiredPermission, permission)
    .annotate(OpenApi.Summary, summary)

/** `update`: accepts an idempotency key; the group adds the body. */
export const providerUpdate = <const Path extends `/${string}`>(path: Path, permission: Permission, summary: string) =>
  HttpApiEndpoint.patch("update", path)
    .setPath(ProviderObjectPath)
    .setUrlParams(NoQuery)
    .setHeaders(OptionalIdempotencyHeaders)
    .addSuccess(ProviderObject)
    .annotate(RequiredPermission, permission)
    .annotate(OpenApi.Summary, summary)
