import type { ConnectedAccount } from "../../src/payments/ProviderCall.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { scripted } from "./ScriptedAdapter.ts"
import { replying } from "./ScriptedProvider.ts"

const account: ConnectedAccount = { environment: "sandbox", accountId: "acct_1" }

const line = (number: number, quantity = 1) => ({
  id: `li_${number}`,
  object: "item",
  price: { id: `price_${number}`, object: "price", product: `prod_${number % 3}` },
  quantity
})

const list = (data: ReadonlyArray<unknown>, has_more: boolean) =>
  JSON.stringify({ object: "list", data, has_more, url: "/v1/checkout/sessions/cs_1/line_items" })

describe("what a session sold", () => {
  it.scopedLive("is read from all its lines, those that a payer added to a hundred, not those removed", function* () {
    const { behave, provider } = yield* scripted({ timeout: "20 seconds", concurrencyPerAccount: 10 })
    const lines = Array.from({ length: 110 }, (_, number) => line(number, number === 104 ? 0 : 1))
    behave((call, response) => {
      const isFirst = !call.path.includes("starting_after=li_99")
      replying(200, isFirst ? list(lines.slice(0, 100), true) : list(lines.slice(100), false), {
        "content-type": "application/json"
      })(call, response)
    })
    const { priceIds, productIds } = yield* provider.listSessionItems(account, "cs_1")
    expect(priceIds).toEqual(lines.filter(({ quantity }) => quantity > 0).map(({ price }) => price.id))
    expect(productIds).toEqual(["prod_0", "prod_1", "prod_2"])
  })
})
