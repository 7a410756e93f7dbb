import { Either, Predicate } from "effect"
import type { Environment } from "../../events/Environment.ts"
import { parseThinNotification } from "../../inbound/ThinNotification.ts"
import { maxJsonBytes } from "../../kit/Body.ts"
import { hashEmail } from "../EmailHash.ts"
import { type RoutingTag, tagOfToken } from "../RoutingTag.ts"
import type { BodyPart } from "./Target.ts"

/**
 * Reads from a request's body which cell the request belongs to. Nothing here is trusted: the cell verifies the signature
 * over the same bytes, looks the token up, and checks every field. A body that says nothing leads to the home cell.
 */

/** The largest body that is read for a part: as much as a cell reads. */
export const maxBytesOf = (part: BodyPart): number => (part.endsWith("notification") ? 1024 * 1024 : maxJsonBytes)

/** What to look up in the directory; `undefined` if the body does not say. */
export type BodyTarget =
  | { readonly by: "account"; readonly environment: Environment; readonly accountId: string }
  | { readonly by: "person"; readonly emailHash: Buffer }
  | { readonly by: "tag"; readonly tag: RoutingTag }
  | undefined

/** The longest id or address that anything has. */
const maxLength = 255

const isShort = (value: unknown): value is string =>
  typeof value === "string" && value.length > 0 && value.length <= maxLength

/** Visible characters alone, as every provider's ids have: no other reaches the directory. */
const isAccountId = (value: unknown): value is string => typeof value === "string" && /^[\x21-\x7e]{1,255}$/.test(value)

/** As a cell reads it: of a key that is repeated, the last one counts. */
const parse = (bytes: Buffer): unknown => {
  try {
    return JSON.parse(bytes.toString("utf8"))
  } catch {
    return undefined
  }
}

/** Finds what a body says; `undefined` if it says nothing. */
export const readBodyTarget = (part: BodyPart, bytes: Buffer): BodyTarget => {
  const json = parse(bytes)
  if (!Predicate.isReadonlyRecord(json)) return undefined
  const environment: Environment = json["livemode"] === true ? "production" : "sandbox"
  switch (part) {
    case "notification": {
      const accountId = json["account"]
      return isAccountId(accountId) ? { by: "account", environment, accountId } : undefined
    }
    case "thin notification": {
      const accountId = Either.match(parseThinNotification(json), {
        onLeft: () => null,
        onRight: ({ account }) => account
      })
      return isAccountId(accountId) ? { by: "account", environment, accountId } : undefined
    }
    case "email": {
      const email = json["email"]
      return isShort(email) ? { by: "person", emailHash: hashEmail(email) } : undefined
    }
    case "token": {
      const token = json["token"]
      const tag = isShort(token) ? tagOfToken(token) : undefined
      return tag === undefined ? undefined : { by: "tag", tag }
    }
  }
}
