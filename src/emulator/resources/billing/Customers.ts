import * as Params from "../../api/Params.ts"
import type { RequestContext, Route } from "../../api/Route.ts"
import { newCode, newId } from "../../Ids.ts"
import { type Customer, nulls } from "../../Records.ts"
import { resource } from "../Resource.ts"

/** Creates the customer for a payer. Event: `customer.created`. */
export const createCustomer = (context: RequestContext, email: string | null): Customer =>
  context.save("customer", "customer.created", {
    id: newId("cus_"),
    object: "customer",
    ...nulls("address currency customer_account default_source description discount name phone shipping test_clock"),
    balance: 0,
    created: context.now,
    delinquent: false,
    email,
    invoice_prefix: newCode(),
    invoice_settings: { custom_fields: null, default_payment_method: null, footer: null, rendering_options: null },
    livemode: false,
    metadata: {},
    next_invoice_sequence: 1,
    preferred_locales: [],
    tax_exempt: "none"
  })

const customers = resource("/v1/customers", "customer")

export const customerRoutes: ReadonlyArray<Route> = [
  customers.list(Params.optionals({ created: Params.range, email: Params.text(512) })),
  customers.get
]
