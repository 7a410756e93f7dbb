import { Schema } from "effect"
import { eventType } from "../EventDefinition.ts"
import { count, flag, providerCode, providerId, unixSeconds } from "../Fields.ts"

const CapabilityStatus = Schema.Literal("active", "pending", "inactive").annotations({
  identifier: "CapabilityStatus",
  description: "Whether the account may use the payment method"
})

/** The data of `account.updated`; it never contains the names of pending fields. */
const AccountUpdatedData = Schema.Struct({
  account_id: providerId("The provider's id of the connected account"),
  livemode: flag("Whether this is about the provider's live mode"),
  charges_enabled: flag("Whether the account can charge"),
  payouts_enabled: flag("Whether the account can receive payouts"),
  details_submitted: flag("Whether the account's details were submitted"),
  capabilities: Schema.Record({ key: Schema.String, value: CapabilityStatus }).annotations({
    identifier: "AccountUpdatedDataCapabilities",
    description: "The status of each payment method"
  }),
  requirements: Schema.Struct({
    action_required: flag("Whether information is pending or overdue"),
    currently_due_count: count("How many pieces of information are due"),
    past_due_count: count("How many pieces of information are overdue"),
    pending_verification_count: count("How many pieces of information are being verified"),
    disabled_reason: Schema.NullOr(providerCode("The provider's code if something is blocked")),
    current_deadline: Schema.NullOr(unixSeconds("By when the due information is needed"))
  }).annotations({
    identifier: "AccountUpdatedDataRequirements",
    description: "Counts of the information that the account still has to submit"
  })
}).annotations({ identifier: "AccountUpdatedData", description: "The connected account's status" })

export const accountEvents = [
  eventType("account.updated", {
    metadata: false,
    description: "The connected account's status changed: what it can do, or what it still has to submit.",
    data: AccountUpdatedData,
    sample: ({ id, inDays }) => ({
      account_id: id("acct"),
      livemode: false,
      charges_enabled: true,
      payouts_enabled: false,
      details_submitted: true,
      capabilities: { card_payments: "active" as const, transfers: "pending" as const },
      requirements: {
        action_required: true,
        currently_due_count: 1,
        past_due_count: 0,
        pending_verification_count: 0,
        disabled_reason: null,
        current_deadline: inDays(14)
      }
    })
  })
] as const
