import { Effect, Schema } from "effect"
import { newId } from "../Ids.ts"
import { newestFirst, page, pageParams } from "../Lists.ts"
import * as Params from "../Params.ts"
import { notFound, type ProviderError } from "../ProviderError.ts"
import type { PaymentLink, Session } from "../Records.ts"
import { noParams, type RequestContext, type Route, route } from "../Route.ts"
import {
  afterCompletionOf,
  afterCompletionParams,
  checkAfterCompletion,
  createPaymentLink,
  paymentLinkParams,
  restrictionsParams
} from "./PaymentLinkCreation.ts"
import { makeSession } from "./SessionCreation.ts"

const updateParams = Schema.Struct({
  active: Params.optional(Params.boolean),
  after_completion: Params.optional(afterCompletionParams),
  allow_promotion_codes: Params.optional(Params.boolean),
  inactive_message: Params.optional(Params.clearable(Params.text(500))),
  metadata: Params.optional(Params.metadata),
  restrictions: Params.optional(Params.clearable(restrictionsParams))
})

type UpdateParams = typeof updateParams.Type

const listParams = Schema.Struct({ ...pageParams, active: Params.optional(Params.boolean) })

const existing = ({ objects }: RequestContext, id: string): Effect.Effect<PaymentLink, ProviderError> => {
  const link = objects.get("payment_link", id)
  return link === undefined ? Effect.fail(notFound("payment_link", id)) : Effect.succeed(link)
}

const change = (context: RequestContext, before: PaymentLink, link: PaymentLink): PaymentLink => {
  context.objects.put("payment_link", link.id, link)
  context.emit({ type: "payment_link.updated", shape: "payment_link", object: link, previous: before })
  return link
}

const restrictionsOf = (before: PaymentLink, params: UpdateParams): PaymentLink["restrictions"] => {
  if (params.restrictions === undefined) return before.restrictions
  if (params.restrictions === null) return null
  const count = before.restrictions?.completed_sessions.count ?? 0
  return { completed_sessions: { count, limit: params.restrictions.completed_sessions.limit } }
}

const update = Effect.fnUntraced(function* (context: RequestContext, params: UpdateParams, id: string) {
  const before = yield* existing(context, id)
  yield* checkAfterCompletion(params.after_completion)
  return change(context, before, {
    ...before,
    active: params.active ?? before.active,
    after_completion:
      params.after_completion === undefined ? before.after_completion : afterCompletionOf(params.after_completion),
    allow_promotion_codes: params.allow_promotion_codes ?? before.allow_promotion_codes,
    inactive_message: params.inactive_message === undefined ? before.inactive_message : params.inactive_message,
    metadata: Params.patchMetadata(before.metadata, params.metadata),
    restrictions: restrictionsOf(before, params)
  })
})

/** Whether a link still sells: it is active, and its sales limit is not reached. */
export const isOpen = ({ active, restrictions }: PaymentLink): boolean =>
  active && (restrictions === null || restrictions.completed_sessions.count < restrictions.completed_sessions.limit)

/** Creates the checkout session for a payer who has opened the link. */
export const openPaymentLink = (context: RequestContext, link: PaymentLink): Session | undefined => {
  const order = context.objects.get("order", link.id)
  if (order === undefined) return undefined
  const items = order.items.map((item) => ({ ...item, id: newId("li_") }))
  const recurring = items.some(({ price }) => price.recurring !== null)
  const { after_completion, allow_promotion_codes, currency, metadata, submit_type } = link
  const session: Session = {
    ...makeSession(
      {
        baseUrl: context.baseUrl,
        currency,
        now: context.now,
        paymentLink: link.id,
        total: items.reduce((sum, item) => sum + item.amount_total, 0)
      },
      {
        allow_promotion_codes,
        metadata,
        mode: recurring ? "subscription" : "payment",
        ...(after_completion.redirect === undefined ? {} : { success_url: after_completion.redirect.url })
      }
    ),
    billing_address_collection: link.billing_address_collection,
    customer_creation: recurring ? null : link.customer_creation,
    submit_type
  }
  context.objects.put("checkout.session", session.id, session)
  context.objects.put("order", session.id, { ...order, items })
  return session
}

/**
 * Counts a completed session of a link; the last one that the limit allows closes the link (`payment_link.updated`).
 */
export const countSale = (context: RequestContext, session: Session): void => {
  const link = session.payment_link === null ? undefined : context.objects.get("payment_link", session.payment_link)
  if (link === undefined || link.restrictions === null) return
  const { count, limit } = link.restrictions.completed_sessions
  const counted: PaymentLink = { ...link, restrictions: { completed_sessions: { count: count + 1, limit } } }
  if (count + 1 < limit) context.objects.put("payment_link", link.id, counted)
  else change(context, link, { ...counted, active: false })
}

const listLineItems = Effect.fnUntraced(function* (
  context: RequestContext,
  params: Schema.Struct.Type<typeof pageParams>,
  id: string
) {
  const link = yield* existing(context, id)
  const items = context.objects.get("order", link.id)?.items ?? []
  return yield* page({ items, noun: "item", url: `/v1/payment_links/${id}/line_items` }, params)
})

/** `/v1/payment_links`: create, retrieve, update, list, list line items. */
export const paymentLinkRoutes: ReadonlyArray<Route> = [
  route({
    method: "POST",
    path: "/v1/payment_links",
    answers: { object: "payment_link" },
    params: paymentLinkParams,
    run: createPaymentLink
  }),
  route({
    method: "GET",
    path: "/v1/payment_links",
    answers: { listOf: "payment_link" },
    params: listParams,
    run: ({ objects }, params) =>
      page(
        {
          items: newestFirst(objects.all("payment_link")),
          matches: ({ active }) => params.active === undefined || active === params.active,
          noun: "payment_link",
          url: "/v1/payment_links"
        },
        params
      )
  }),
  route({
    method: "GET",
    path: "/v1/payment_links/:id",
    answers: { object: "payment_link" },
    params: noParams,
    run: (context, _, id) => existing(context, id)
  }),
  route({
    method: "POST",
    path: "/v1/payment_links/:id",
    answers: { object: "payment_link" },
    params: updateParams,
    run: update
  }),
  route({
    method: "GET",
    path: "/v1/payment_links/:id/line_items",
    answers: { listOf: "item" },
    params: Schema.Struct(pageParams),
    run: listLineItems
  })
]
