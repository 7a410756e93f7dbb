import { Either, Schema } from "effect"
import { maxUnixSeconds } from "../events/Envelope.ts"
import { type Malformed, malformed, orAbsent, ProviderName } from "../events/stripe/ProviderEvent.ts"

/**
 * Thin notifications of the provider: they name what happened, without the object. Those about accounts trigger a
 * reading of the account's status; none leads to anything else, least of all a payment (contract 11.5).
 */

/** ISO 8601 in the provider's thin form; Unix seconds, as in its snapshots, are accepted too. */
const Created = Schema.Union(
  Schema.Number.pipe(Schema.int(), Schema.between(0, maxUnixSeconds)),
  Schema.String.pipe(
    Schema.filter((text) => {
      const seconds = Date.parse(text) / 1000
      return seconds >= 0 && seconds <= maxUnixSeconds
    })
  )
)

const Thin = Schema.Struct({
  id: ProviderName,
  object: Schema.Literal("v2.core.event"),
  type: ProviderName,
  created: Created,
  livemode: Schema.Boolean,
  context: orAbsent(Schema.String),
  related_object: orAbsent(Schema.Struct({ id: Schema.String, type: Schema.String }))
})

/** The facts by which a notification is classified, whatever its form. */
export interface Notification {
  readonly id: string
  readonly type: string
  /** Whole Unix seconds. */
  readonly created: number
  readonly livemode: boolean
  /** Null if it is not about an account. */
  readonly account: string | null
}

const isName = Schema.is(ProviderName)

/** The account that a thin notification is about: its object, or the innermost part of its context. */
const accountOf = ({ context, related_object: object }: typeof Thin.Type): string | null => {
  const isAccount = object?.type === "account" || object?.type === "v2.core.account"
  const account = isAccount ? object.id : context?.split("/").at(-1)
  return isName(account) ? account : null
}

const decode = Schema.decodeUnknownEither(Thin, { errors: "all" })

/** Reads a verified thin notification from parsed JSON. Never throws. */
export const parseThinNotification = (input: unknown): Either.Either<Notification, Malformed> =>
  Either.mapBoth(decode(input), {
    onLeft: (error) => malformed("event", error),
    onRight: (thin) => ({
      id: thin.id,
      type: thin.type,
      created: typeof thin.created === "number" ? thin.created : Math.floor(Date.parse(thin.created) / 1000),
      livemode: thin.livemode,
      account: accountOf(thin)
    })
  })

/** Whether an account's status may have changed after this thin type, of the provider's first or second API. */
export const isAccountUpdate = (type: string): boolean =>
  type === "v1.account.updated" || type === "v1.capability.updated" || /^v2\.core\.account(\.|\[)/.test(type)

/** The provider's thin type for an account that revoked our access. */
export const thinDeauthorization = "v1.account.application.deauthorized"
