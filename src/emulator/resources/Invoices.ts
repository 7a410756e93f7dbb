import { Effect, Schema } from "effect"
import { newestFirst, page, pageParams } from "../Lists.ts"
import * as Params from "../Params.ts"
import { notFound, type ProviderError } from "../ProviderError.ts"
import type { Invoice } from "../Records.ts"
import { noParams, type RequestContext, type Route, route } from "../Route.ts"

const listParams = Schema.Struct({
  ...pageParams,
  collection_method: Params.optional(Params.oneOf("charge_automatically", "send_invoice")),
  created: Params.optional(Params.range),
  customer: Params.optional(Params.text()),
  status: Params.optional(Params.oneOf("draft", "open", "paid", "uncollectible", "void")),
  subscription: Params.optional(Params.text())
})

const existing = ({ objects }: RequestContext, id: string): Effect.Effect<Invoice, ProviderError> => {
  const invoice = objects.get("invoice", id)
  return invoice === undefined ? Effect.fail(notFound("invoice", id)) : Effect.succeed(invoice)
}

const list = ({ objects }: RequestContext, params: typeof listParams.Type) =>
  page(
    {
      items: newestFirst(objects.all("invoice")),
      matches: ({ collection_method, created, customer, parent, status }) =>
        Params.inRange(created, params.created) &&
        (params.collection_method === undefined || collection_method === params.collection_method) &&
        (params.customer === undefined || customer === params.customer) &&
        (params.status === undefined || status === params.status) &&
        (params.subscription === undefined || parent.subscription_details.subscription === params.subscription),
      noun: "invoice",
      url: "/v1/invoices"
    },
    params
  )

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
  route({ method: "GET", path: "/v1/invoices", answers: { listOf: "invoice" }, params: listParams, run: list }),
  route({
    method: "GET",
    path: "/v1/invoices/:id",
    answers: { object: "invoice" },
    params: noParams,
    run: (context, _, id) => existing(context, id)
  }),
  route({
    method: "GET",
    path: "/v1/invoices/:id/lines",
    answers: { listOf: "line_item" },
    params: Schema.Struct(pageParams),
    run: listLines
  })
]
