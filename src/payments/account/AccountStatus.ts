import { Either, Schema } from "effect"
import type { EventData } from "../../events/Catalog.ts"
import { flag, providerCode, providerId, unixSeconds } from "../../events/Fields.ts"
import { type Malformed, malformed, orAbsent } from "../../events/stripe/ProviderEvent.ts"
import type { Environment } from "../../platform/kit/Environment.ts"
import type { ProviderObject } from "../Schemas.ts"

export type AccountStatus = EventData<"account.updated">

/** The fields of the provider's account from which its status is derived. */
const Account = Schema.Struct({
  id: providerId("The account"),
  charges_enabled: flag("Whether it can charge"),
  payouts_enabled: flag("Whether it can be paid out"),
  details_submitted: flag("Whether its details were handed in"),
  capabilities: orAbsent(Schema.Record({ key: Schema.String, value: Schema.Unknown })),
  requirements: orAbsent(
    Schema.Struct({
      currently_due: orAbsent(Schema.Array(Schema.Unknown)),
      past_due: orAbsent(Schema.Array(Schema.Unknown)),
      pending_verification: orAbsent(Schema.Array(Schema.Unknown)),
      disabled_reason: orAbsent(providerCode("Why it is blocked")),
      current_deadline: orAbsent(unixSeconds("By when information is due"))
    })
  )
})

const decode = Schema.decodeUnknownEither(Account, { errors: "all" })

/** The names of payment methods: visible ASCII. Other names are left out, since they could not be stored. */
const methodName = /^[\x21-\x7e]{1,255}$/

/** Any status but the contract's three maps to `inactive`: the method can't be used. */
const capabilityStatus = (status: unknown): AccountStatus["capabilities"][string] =>
  status === "active" || status === "pending" ? status : "inactive"

const capabilitiesOf = (capabilities: Readonly<Record<string, unknown>> | null): AccountStatus["capabilities"] =>
  Object.fromEntries(
    Object.entries(capabilities ?? {})
      .filter(([method]) => methodName.test(method))
      .map(([method, status]) => [method, capabilityStatus(status)])
  )

const requirementsOf = (requirements: (typeof Account.Type)["requirements"]): AccountStatus["requirements"] => {
  const due = requirements?.currently_due?.length ?? 0
  const overdue = requirements?.past_due?.length ?? 0
  return {
    action_required: due > 0 || overdue > 0,
    currently_due_count: due,
    past_due_count: overdue,
    pending_verification_count: requirements?.pending_verification?.length ?? 0,
    disabled_reason: requirements?.disabled_reason ?? null,
    current_deadline: requirements?.current_deadline ?? null
  }
}

/** Exactly the documented fields, with counts of requirements; or the paths of missing fields. */
export const accountStatus = (
  environment: Environment,
  account: ProviderObject
): Either.Either<AccountStatus, Malformed> =>
  Either.mapBoth(decode(account), {
    onLeft: (error) => malformed("account", error),
    onRight: ({ capabilities, charges_enabled, details_submitted, id, payouts_enabled, requirements }) => ({
      account_id: id,
      livemode: environment === "production",
      charges_enabled,
      payouts_enabled,
      details_submitted,
      capabilities: capabilitiesOf(capabilities),
      requirements: requirementsOf(requirements)
    })
  })
