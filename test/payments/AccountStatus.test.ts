import { describe, expect, it } from "@effect/vitest"
import { Either } from "effect"
import { accountStatus } from "../../src/payments/account/AccountStatus.ts"

const required = { id: "acct_1", charges_enabled: true, payouts_enabled: true, details_submitted: true }

const bare = {
  account_id: "acct_1",
  livemode: false,
  charges_enabled: true,
  payouts_enabled: true,
  details_submitted: true,
  capabilities: {},
  requirements: {
    action_required: false,
    currently_due_count: 0,
    past_due_count: 0,
    pending_verification_count: 0,
    disabled_reason: null,
    current_deadline: null
  }
}

describe("an account's status", () => {
  it("has zeros, null and no methods where the provider tells of no requirements and capabilities", () => {
    for (const absent of [{}, { requirements: null, capabilities: null }, { requirements: {}, capabilities: {} }]) {
      expect(accountStatus("sandbox", { ...required, ...absent })).toEqual(Either.right(bare))
    }
  })

  it("says which mode it is of, and takes a capability's status that nobody knows for one that can't be used", () => {
    const status = accountStatus("production", {
      ...required,
      capabilities: {
        card_payments: "active",
        pix_payments: "pending",
        transfers: "inactive",
        new_payments: "restricted"
      }
    })
    expect(status).toEqual(
      Either.right({
        ...bare,
        livemode: true,
        capabilities: {
          card_payments: "active",
          pix_payments: "pending",
          transfers: "inactive",
          new_payments: "inactive"
        }
      })
    )
  })

  it("is none where the account lacks what every account has: the paths are said, never the values", () => {
    const { charges_enabled: _, ...lacking } = required
    expect(accountStatus("sandbox", { ...lacking, payouts_enabled: "CANARY" })).toEqual(
      Either.left({
        _tag: "Malformed",
        reason: "missing or not as expected: account.charges_enabled, account.payouts_enabled"
      })
    )
  })
})
