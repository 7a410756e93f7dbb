import { describe, expect, it } from "@effect/vitest"
import { Either, FastCheck as fc, Schema } from "effect"
import { eventData } from "../../src/events/Catalog.ts"
import { accountStatus } from "../../src/payments/account/AccountStatus.ts"

const canary = "CANARY"

const decode = Schema.decodeUnknownEither(eventData["account.updated"], { onExcessProperty: "error" })

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

const names = fc.option(
  fc.array(
    fc.string().map((name) => `${canary}${name}`),
    { maxLength: 5 }
  )
)

/** An account as the provider may show it: optional parts there, null or missing, and much that is nobody's business. */
const account = fc.record(
  {
    id: fc.constant("acct_1"),
    charges_enabled: fc.boolean(),
    payouts_enabled: fc.boolean(),
    details_submitted: fc.boolean(),
    capabilities: fc.option(
      fc.dictionary(fc.string(), fc.oneof(fc.constantFrom("active", "pending", "inactive", "disabled"), fc.jsonValue()))
    ),
    requirements: fc.option(
      fc.record(
        {
          currently_due: names,
          past_due: names,
          pending_verification: names,
          eventually_due: names,
          disabled_reason: fc.option(fc.constantFrom("requirements.past_due", "under_review")),
          current_deadline: fc.option(fc.nat()),
          errors: fc.array(fc.record({ reason: fc.constant(canary) }))
        },
        { requiredKeys: [] }
      )
    ),
    email: fc.constant(canary),
    individual: fc.record({ first_name: fc.constant(canary) }),
    metadata: fc.dictionary(fc.constant(canary), fc.constant(canary))
  },
  { requiredKeys: ["id", "charges_enabled", "payouts_enabled", "details_submitted"] }
)

describe("an account's status", () => {
  it("is the documented fields and nothing else, whatever the provider shows beside them", () => {
    fc.assert(
      fc.property(account, (input) => {
        const status = Either.getOrThrow(accountStatus("sandbox", input))
        expect(Either.isRight(decode(status))).toBe(true)
        expect(JSON.stringify(status)).not.toContain(canary)
        const { requirements } = status
        const length = (list: ReadonlyArray<string> | null | undefined) => list?.length ?? 0
        expect(requirements).toMatchObject({
          currently_due_count: length(input.requirements?.currently_due),
          past_due_count: length(input.requirements?.past_due),
          pending_verification_count: length(input.requirements?.pending_verification),
          disabled_reason: input.requirements?.disabled_reason ?? null,
          current_deadline: input.requirements?.current_deadline ?? null
        })
        expect(requirements.action_required).toBe(
          requirements.currently_due_count > 0 || requirements.past_due_count > 0
        )
      })
    )
  })

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
    expect(accountStatus("sandbox", { ...lacking, payouts_enabled: canary })).toEqual(
      Either.left({
        _tag: "Malformed",
        reason: "missing or not as expected: account.charges_enabled, account.payouts_enabled"
      })
    )
  })
})
