import { describe, expect, it } from "@effect/vitest"
import { Either } from "effect"
import { type Filters, passes } from "../../src/events/Filters.ts"
import { filterSubjects } from "../../src/events/stripe/FilterSubjects.ts"
import { parseProviderEvent } from "../../src/events/stripe/Translate.ts"
import { paymentIntent, snapshot } from "./ProviderEvents.ts"

/*
 * The two types of the catalog that no snapshot is translated into, through each filter; `Filters.test.ts` has the
 * seventeen others.
 */

const metadata = { shop: "north" }

const subjectsOf = (type: string, object: unknown, soldItems: Parameters<typeof filterSubjects>[1] = null) =>
  filterSubjects(Either.getOrThrow(parseProviderEvent(snapshot(type, object))), soldItems)

/** Made of the payment that caused it: compared as that is. */
const milestone = {
  data: { payment_id: "pi_1", amount_received: 1500, currency: "brl" },
  subjects: subjectsOf("payment_intent.succeeded", { ...paymentIntent, metadata })
}

/** With everything at the provider that a filter could be mistaken about. */
const accountUpdated = {
  data: {
    account_id: "acct_1",
    livemode: false,
    charges_enabled: true,
    payouts_enabled: true,
    details_submitted: true,
    capabilities: { card_payments: "active" },
    requirements: {
      action_required: false,
      currently_due_count: 0,
      past_due_count: 0,
      pending_verification_count: 0,
      disabled_reason: null,
      current_deadline: null
    }
  },
  subjects: subjectsOf(
    "account.updated",
    { id: "acct_1", default_currency: "brl", amount: 1500, metadata, items: { data: [{ price: { id: "price_1" } }] } },
    { priceIds: ["price_1"], productIds: ["prod_1"] }
  )
}

/** Each filter that the payment passes, where it applies to it; and the same with other values. */
const table: ReadonlyArray<readonly [key: keyof Filters, fits: Filters, differs: Filters, ofMilestone: boolean]> = [
  ["currencies", { currencies: ["usd", "brl"] }, { currencies: ["usd"] }, true],
  ["amountMin", { amountMin: 1500 }, { amountMin: 1501 }, true],
  ["amountMax", { amountMax: 1500 }, { amountMax: 1499 }, true],
  ["products", { products: ["prod_1"] }, { products: ["prod_2"] }, false],
  ["prices", { prices: ["price_1"] }, { prices: ["price_2"] }, false],
  ["metadata", { metadata: { shop: "north" } }, { metadata: { shop: "south" } }, true]
]

describe("filters decide by type and key as the contract's table says", () => {
  for (const [key, fits, differs, ofMilestone] of table) {
    it(`milestone.first_payment × ${key}: ${ofMilestone ? "compared" : "never delivered"}`, () => {
      expect(passes(fits, milestone)).toBe(ofMilestone)
      expect(passes(differs, milestone)).toBe(false)
    })

    it(`account.updated × ${key}: never delivered`, () => {
      expect(passes(fits, accountUpdated)).toBe(false)
      expect(passes(differs, accountUpdated)).toBe(false)
    })
  }

  it("milestone.first_payment × {}, account.updated × {}: delivered", () => {
    expect(passes({}, milestone)).toBe(true)
    expect(passes({}, accountUpdated)).toBe(true)
  })
})
