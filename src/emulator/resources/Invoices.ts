import { Effect, Schema } from "effect"
import { existingOf, listRoute, page, pageParams, retrieveRoute } from "../Lists.ts"
import * as Params from "../Params.ts"
import { type RequestContext, type Route, route } from "../Route.ts"

const listParams = Schema.Struct({
  ...pageParams,
  collection_method: Params.optional(Params.oneOf("charge_automatically", "send_invoice")),
  created: Params.optional(Params.range),
  customer: Params.optional(Params.text()),
  status: Params.optional(Params.oneOf("draft", "open", "paid", "uncollectible", "void")),
  subscription: Params.optional(Params.text())
})

const existing = existingOf("invoice")

const listLines = Effect.fnUntraced(function* (
  context: RequestContext,
  params: Schema.Struct.Type<typeof pageParams>,
  id: string
) {
  const invoice = yield* existing(context, id)
  return yield* page({ items: invoice.lines.data, noun: "line item", url: invoice.lines.url }, params)
})

/** `/v1/invoices`: retrieve, list, list lines; subscriptions create them. */
export const invoiceRoutes: ReadonlyArray<Route> = [
  listRoute({
    path: "/v1/invoices",
    kind: "invoice",
    params: listParams,
    matches: ({ collection_method, created, customer, parent, status }, params) =>
      Params.inRange(created, params.created) &&
      (params.collection_method === undefined || collection_method === params.collection_method) &&
      (params.customer === undefined || customer === params.customer) &&
      (params.status === undefined || status === params.status) &&
      (params.subscription === undefined || parent.subscription_details.subscription === params.subscription)
  }),
  retrieveRoute("/v1/invoices/:id", "invoice", existing),
  route({
    method: "GET",
    path: "/v1/invoices/:id/lines",
    answers: { listOf: "line_item" },
    params: Schema.Struct(pageParams),
    run: listLines
  })
]
