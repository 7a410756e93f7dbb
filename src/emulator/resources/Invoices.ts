import { Schema } from "effect"
import { pageParams } from "../api/Lists.ts"
import * as Params from "../api/Params.ts"
import type { Route } from "../api/Route.ts"
import { resource } from "./Resource.ts"

const listParams = Schema.Struct({
  ...pageParams,
  collection_method: Params.optional(Params.oneOf("charge_automatically", "send_invoice")),
  created: Params.optional(Params.range),
  customer: Params.optional(Params.text()),
  status: Params.optional(Params.oneOf("draft", "open", "paid", "uncollectible", "void")),
  subscription: Params.optional(Params.text())
})

const invoices = resource("/v1/invoices", "invoice")

export const invoiceRoutes: ReadonlyArray<Route> = [
  invoices.list(listParams, {
    fields: ["collection_method", "created", "customer", "status"],
    matches: ({ parent }, { subscription = parent.subscription_details.subscription }) =>
      parent.subscription_details.subscription === subscription
  }),
  invoices.get,
  invoices.parts("lines", "line_item", (_, { lines }) => ({ items: lines.data, noun: "line item" }))
]
