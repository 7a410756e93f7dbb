import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Context, Schema } from "effect"
import { Authentication } from "../identity/Authentication.ts"
import { type Permission, RequiredPermission } from "../identity/keys/Permissions.ts"
import { OrganizationId } from "../platform/kit/Ids.ts"
import {
  IdempotencyHeaders,
  NoQuery,
  OptionalIdempotencyHeaders,
  OrganizationPath,
  ProviderId,
  pageFields,
  strict
} from "../platform/kit/Request.ts"
import { kindTakenBy } from "./ObjectKinds.ts"
import { providerErrors } from "./ProviderErrors.ts"
import { ProviderObject, ProviderPage, referenceTo } from "./Schemas.ts"

/**
 * Declared on endpoints that are of no use without some of the provider's calls, by their names in the port: with a provider
 * that lacks one, the endpoint is in no document and no list of tools. The shapes below declare the call that is named after
 * their verb and their path, `retrievePaymentLink` for a read of `/payment-links/:id`; another declaration replaces it.
 */
export class NeededCalls extends Context.Tag("connected-payments/payments/NeededCalls")<
  NeededCalls,
  ReadonlyArray<string>
>() {}

export const providerGroup = <const Name extends string>(name: Name, description: string) =>
  HttpApiGroup.make(name).addError(providerErrors).middleware(Authentication).annotate(OpenApi.Description, description)

const prefix = "/v2/organizations/:organizationId/provider"

/** The path of one object, whose kind is the collection's: `/payment-links/:id`. */
const objectPath = (path: string) => {
  const kind = kindTakenBy(/([a-z-]+)s\/:id/.exec(path)?.[1]?.replaceAll("-", "_") ?? "")
  return Schema.Struct({ organizationId: OrganizationId, id: kind === undefined ? ProviderId : referenceTo(kind) })
}

/** The objects of a path, as the provider's calls name them: `PaymentLinks` for `/payment-links/:id`. */
const objectsOf = (path: string): string =>
  path.replace(/\/:id.*/, "").replaceAll(/[/-](\w)/g, (_, letter: string) => letter.toUpperCase())

const oneOf = (path: string): string => objectsOf(path).replace(/s$/, "")

/** The shapes of the operations on the provider's objects; a group sets the rest on the endpoint. */

/** A read of one object: the account's only one of its kind. */
export const providerRead = <const Name extends string, const Path extends `/${string}`>(
  name: Name,
  path: Path,
  permission: Permission,
  summary: string
) =>
  HttpApiEndpoint.get(name, `${prefix}${path}`)
    .setPath(OrganizationPath)
    .setUrlParams(NoQuery)
    .addSuccess(ProviderObject)
    .annotate(RequiredPermission, permission)
    .annotate(OpenApi.Summary, summary)

export const providerGet = <const Path extends `/${string}`>(path: Path, permission: Permission, summary: string) =>
  providerRead("get", path, permission, summary)
    .setPath(objectPath(path))
    .annotate(NeededCalls, [`retrieve${oneOf(path)}`])

/** `list`: a page of objects; the group adds the query. */
export const providerList = <const Path extends `/${string}`>(path: Path, permission: Permission, summary: string) =>
  HttpApiEndpoint.get("list", `${prefix}${path}`)
    .setPath(OrganizationPath)
    .addSuccess(ProviderPage)
    .annotate(NeededCalls, [`list${objectsOf(path)}`])
    .annotate(RequiredPermission, permission)
    .annotate(OpenApi.Summary, summary)

export const ListLineItems = strict(Schema.Struct(pageFields))
export type ListLineItems = typeof ListLineItems.Type

/** `lineItems`: a page of what an object sells, in its order. */
export const providerLineItems = <const Path extends `/${string}`>(
  path: Path,
  permission: Permission,
  summary: string
) =>
  HttpApiEndpoint.get("lineItems", `${prefix}${path}`)
    .setPath(objectPath(path))
    .setUrlParams(ListLineItems)
    .addSuccess(ProviderPage)
    .annotate(RequiredPermission, permission)
    .annotate(OpenApi.Summary, summary)

export const providerAction = <const Name extends string, const Path extends `/${string}`>(
  name: Name,
  path: Path,
  permission: Permission,
  summary: string
) =>
  HttpApiEndpoint.post(name, `${prefix}${path}`)
    .setPath(objectPath(path))
    .setUrlParams(NoQuery)
    .setHeaders(IdempotencyHeaders)
    .addSuccess(ProviderObject)
    .annotate(NeededCalls, [`${name}${oneOf(path)}`])
    .annotate(RequiredPermission, permission)
    .annotate(OpenApi.Summary, summary)

/** `create`: requires an idempotency key; the group adds the body. */
export const providerCreate = <const Path extends `/${string}`>(path: Path, permission: Permission, summary: string) =>
  providerAction("create", path, permission, summary).setPath(OrganizationPath)

/** `update`: accepts an idempotency key; the group adds the body. */
export const providerUpdate = <const Path extends `/${string}`>(path: Path, permission: Permission, summary: string) =>
  HttpApiEndpoint.patch("update", `${prefix}${path}`)
    .setPath(objectPath(path))
    .setUrlParams(NoQuery)
    .setHeaders(OptionalIdempotencyHeaders)
    .addSuccess(ProviderObject)
    .annotate(NeededCalls, [`update${oneOf(path)}`])
    .annotate(RequiredPermission, permission)
    .annotate(OpenApi.Summary, summary)
