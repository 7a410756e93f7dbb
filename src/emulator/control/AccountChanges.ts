import { Schema } from "effect"
import type { Account, Requirements } from "../Records.ts"
import { maybe, option } from "./ControlInput.ts"

const names = Schema.NullOr(Schema.Array(Schema.String))

const requirementsChange = Schema.Struct({
  current_deadline: maybe(Schema.NullOr(Schema.Int)),
  currently_due: maybe(names),
  disabled_reason: maybe(Schema.NullOr(Schema.String)),
  eventually_due: maybe(names),
  past_due: maybe(names),
  pending_verification: maybe(names)
})

/**
 * A change to an account: its status (`charges_enabled`, `payouts_enabled`, `details_submitted`, `capabilities`,
 * `requirements`) or only its profile. Only the named capabilities and requirements change; `null` removes all of them,
 * as on accounts for which the provider does not report them.
 */
export const accountChange = {
  business_profile: option(
    Schema.Struct({ name: maybe(Schema.String), url: maybe(Schema.String) }),
    "{name, url}: changes only the profile"
  ),
  capabilities: option(
    Schema.NullOr(Schema.Record({ key: Schema.String, value: Schema.Literal("active", "pending", "inactive") })),
    "{<capability>: active | pending | inactive}, or null"
  ),
  charges_enabled: option(Schema.Boolean, "true or false"),
  details_submitted: option(Schema.Boolean, "true or false"),
  payouts_enabled: option(Schema.Boolean, "true or false"),
  requirements: option(
    Schema.NullOr(requirementsChange),
    "{currently_due, eventually_due, past_due, pending_verification: names; disabled_reason, current_deadline}, or null"
  )
}

const accountChangeSchema = Schema.Struct(accountChange)

export type AccountChanges = typeof accountChangeSchema.Type

export const noRequirements = {
  alternatives: [],
  current_deadline: null,
  currently_due: [],
  disabled_reason: null,
  errors: [],
  eventually_due: [],
  past_due: [],
  pending_verification: []
} as const satisfies Requirements

/** What remains of requirements once everything is submitted. */
const { alternatives: _, errors: __, ...noneDue } = noRequirements

/** Seconds until the deadline of a requirement that becomes due. */
const timeToHandIn = 14 * 24 * 60 * 60

const document = "individual.verification.document"

/** The default change: makes a document due or, if something is due already, submits it. */
export const usualChange = ({ requirements }: Account, now: number): AccountChanges =>
  (requirements?.currently_due ?? []).length === 0
    ? {
        capabilities: { transfers: "pending" },
        requirements: {
          current_deadline: now + timeToHandIn,
          currently_due: [document],
          eventually_due: [document]
        }
      }
    : {
        capabilities: { card_payments: "active", transfers: "active" },
        charges_enabled: true,
        payouts_enabled: true,
        requirements: noneDue
      }

export const changedAccount = (before: Account, change: AccountChanges): Account => {
  const { business_profile, capabilities, requirements, ...flags } = change
  const { capabilities: capabilitiesBefore, requirements: requirementsBefore, ...rest } = before
  return {
    ...rest,
    ...flags,
    ...(business_profile === undefined || before.business_profile == null
      ? {}
      : { business_profile: { ...before.business_profile, ...business_profile } }),
    ...(capabilities === null ? {} : { capabilities: { ...capabilitiesBefore, ...capabilities } }),
    ...(requirements === null ? {} : { requirements: { ...noRequirements, ...requirementsBefore, ...requirements } })
  }
}
