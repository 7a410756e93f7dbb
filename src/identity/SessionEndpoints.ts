import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import type { Schema } from "effect"
import { NoQuery } from "../platform/kit/Request.ts"
import { SessionAuthentication } from "./Authentication.ts"

export const sessionGroup = <const Name extends string, E, I>(
  name: Name,
  description: string,
  errors: Schema.Schema<E, I>
) =>
  HttpApiGroup.make(name).addError(errors).middleware(SessionAuthentication).annotate(OpenApi.Description, description)

const sessionEndpoint =
  <const Method extends "GET" | "POST" | "PUT" | "PATCH" | "DELETE">(method: Method) =>
  <const Name extends string, const Path extends `/${string}`>(name: Name, path: Path, summary: string) =>
    HttpApiEndpoint.make(method)(name, path).setUrlParams(NoQuery).annotate(OpenApi.Summary, summary)

/** The shapes of their operations; a group sets the rest. */
export const sessionGet = sessionEndpoint("GET")
export const sessionPost = sessionEndpoint("POST")
export const sessionPut = sessionEndpoint("PUT")
export const sessionPatch = sessionEndpoint("PATCH")
export const sessionDelete = sessionEndpoint("DELETE")
