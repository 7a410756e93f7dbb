import { Schema } from "effect"
import { newCode, newId } from "../Ids.ts"
import { existingOf, listRoute, pageParams, retrieveRoute } from "../Lists.ts"
import * as Params from "../Params.ts"
import type { Customer } from "../Records.ts"
import type { RequestContext, Route } from "../Route.ts"

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
  context.objects.put("customer", customer.id, customer)
  context.emit({ type: "customer.created", shape: "customer", object: customer })
  return customer
}

const listParams = Schema.Struct({
  ...pageParams,
  created: Params.optional(Params.range),
  email: Params.optional(Params.text(512))
})

/** `/v1/customers`: retrieve and list; the hosted page creates them. */
export const customerRoutes: ReadonlyArray<Route> = [
  listRoute({
    path: "/v1/customers",
    kind: "customer",
    params: listParams,
    matches: ({ created, email }, params) =>
      Params.inRange(created, params.created) && (params.email === undefined || email === params.email)
  }),
  retrieveRoute("/v1/customers/:id", "customer", existingOf("customer"))
]
