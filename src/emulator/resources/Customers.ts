import { Schema } from "effect"
import { pageParams } from "../api/Lists.ts"
import * as Params from "../api/Params.ts"
import type { RequestContext, Route } from "../api/Route.ts"
import { newCode, newId } from "../Ids.ts"
import type { Customer } from "../Records.ts"
import { resource } from "./Resource.ts"

/** Creates the customer for a payer. Event: `customer.created`. */
export const createCustomer = (context: RequestContext, email: string | null): Customer => {
  const customer: Customer = {
    id: newId("cus_"),
    object: "customer",
    address: null,
    balance: 0,
    created: context.now,
    currency: null,
    customer_account: null,
    default_source: null,
    delinquent: false,
    description: null,
    discount: null,
    email,
    invoice_prefix: newCode(),
    invoice_settings: { custom_fields: null, default_payment_method: null, footer: null, rendering_options: null },
    livemode: false,
    metadata: {},
    name: null,
    next_invoice_sequence: 1,
    phone: null,
    preferred_locales: [],
    shipping: null,
    tax_exempt: "none",
    test_clock: null
  }
  context.save("customer", customer, "customer.created")
  return customer
}

const listParams = Schema.Struct({
  ...pageParams,
  created: Params.optional(Params.range),
  email: Params.optional(Params.text(512))
})

const customers = resource("/v1/customers", "customer")

/** `/v1/customers`: retrieve and list; the hosted page creates them. */
export const customerRoutes: ReadonlyArray<Route> = [
  customers.list(listParams, { fields: ["created", "email"] }),
  customers.get
]
