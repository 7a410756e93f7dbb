import { createHash, timingSafeEqual } from "node:crypto"
import { Effect } from "effect"
import type { HttpRequest } from "./Http.ts"
import { ProviderError } from "./ProviderError.ts"
import type { Account } from "./Records.ts"
import type { Scoped } from "./store/Store.ts"

const unauthorized = (message: string): Effect.Effect<never, ProviderError> =>
  Effect.fail(new ProviderError({ status: 401, type: "invalid_request_error", message }))

const keyOf = (authorization: string): string | undefined => {
  const [scheme = "", credential = ""] = authorization.trim().split(/\s+/, 2)
  switch (scheme.toLowerCase()) {
    case "bearer":
      return credential
    case "basic":
      return Buffer.from(credential, "base64").toString("utf8").split(":", 1)[0]
    default:
      return undefined
  }
}

/** A valid key of another platform: to it, every account looks as if its owner had revoked access. */
export const anotherPlatformKey = "sk_test_AnotherPlatform"

export const isAnotherPlatforms = (request: HttpRequest): boolean =>
  keyOf(request.header("authorization") ?? "") === anotherPlatformKey

const digest = (text: string): Buffer => createHash("sha256").update(text).digest()

export const authenticate = (request: HttpRequest, secretKey: string): Effect.Effect<void, ProviderError> => {
  const authorization = request.header("authorization")
  const key = authorization === undefined ? undefined : keyOf(authorization)
  if (key === undefined || key === "") {
    return unauthorized("You did not provide an API key. Provide it in the Authorization header, using Bearer auth.")
  }
  return timingSafeEqual(digest(key), digest(secretKey))
    ? Effect.void
    : unauthorized(`Invalid API Key provided: ${key.slice(0, 8)}****`)
}

export const isConnected = (platform: Scoped, account: string): boolean =>
  platform.get("connection", account)?.revoked !== true

/** The account, if the platform may act for it. */
export const connectedAccount = (platform: Scoped, id: string): Account | undefined =>
  isConnected(platform, id) ? platform.get("account", id) : undefined
