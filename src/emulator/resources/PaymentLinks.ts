import { Effect, Schema } from "effect"
import { pageParams } from "../api/Lists.ts"
import * as Params from "../api/Params.ts"
import type { RequestContext, Route } from "../api/Route.ts"
import { newId } from "../Ids.ts"
import { invalid, type ProviderError } from "../ProviderError.ts"
import type { PaymentLink, Session } from "../Records.ts"
import {
  afterCompletionOf,
  afterCompletionParams,
  checkAfterCompletion,
  createPaymentLink,
  noLinkPaymentData,
  paymentLinkParams,
  restrictionsParams
} from "./PaymentLinkCreation.ts"
import { resource } from "./Resource.ts"
import { soldItems, sumOf } from "./Sales.ts"
import { makeSession } from "./SessionCreation.ts"

const updateParams = Schema.Struct({
  active: Params.optional(Params.boolean),
  after_completion: Params.optional(afterCompletionParams),
  allow_promotion_codes: Params.optional(Params.boolean),
  inactive_message: Params.optional(Params.clearable(Params.text(500))),
  metadata: Params.optional(Params.metadata),
  payment_intent_data: Params.optional(Schema.Struct({ metadata: Params.optional(Params.metadata) })),
  restrictions: Params.optional(Params.clearable(restrictionsParams)),
  subscription_data: Params.optional(Schema.Struct({ metadata: Params.optional(Params.metadata) }))
})

type UpdateParams = typeof updateParams.Type

const listParams = Schema.Struct({ ...pageParams, active: Params.optional(Params.boolean) })

const links = resource("/v1/payment_links", "payment_link")

const change = (context: RequestContext, before: PaymentLink, link: PaymentLink): PaymentLink => {
  context.save("payment_link", link, "payment_link.updated", before)
  return link
}

const restrictionsOf = (before: PaymentLink, params: UpdateParams): PaymentLink["restrictions"] => {
  if (params.restrictions === undefined) return before.restrictions
  if (params.restrictions === null) return null
  const count = before.restrictions?.completed_sessions.count ?? 0
  return { completed_sessions: { count, limit: params.restrictions.completed_sessions.limit } }
}

const checkCarried = (link: PaymentLink, params: UpdateParams): Effect.Effect<void, ProviderError> => {
  const recurs = link.subscription_data !== null
  const other = recurs ? "payment_intent_data" : "subscription_data"
  return params[other] === undefined
    ? Effect.void
    : invalid(
        other,
        recurs
          ? "`payment_intent_data` cannot be set for recurring prices."
          : "`subscription_data` can only be set for recurring prices."
      )
}

/** The metadata for the link's payments or subscriptions. Unlike an object's own, it is replaced as a whole. */
const carriedOf = (params: UpdateParams): Record<string, string> | undefined => {
  const carried = params.payment_intent_data?.metadata ?? params.subscription_data?.metadata
  return carried === undefined ? undefined : Params.patchMetadata({}, carried)
}

/** Also in its order, from which sessions are created. */
const carrying = (context: RequestContext, link: PaymentLink, metadata: Record<string, string>): PaymentLink => {
  const order = context.objects.get("order", link.id)
  if (order !== undefined) {
    context.objects.put("order", link.id, {
      ...order,
      paymentIntentData: { ...order.paymentIntentData, metadata },
      subscriptionData: { ...order.subscriptionData, metadata }
    })
  }
  return link.subscription_data === null
    ? { ...link, payment_intent_data: { ...(link.payment_intent_data ?? noLinkPaymentData), metadata } }
    : { ...link, subscription_data: { ...link.subscription_data, metadata } }
}

const update = Effect.fnUntraced(function* (context: RequestContext, params: UpdateParams, before: PaymentLink) {
  yield* checkAfterCompletion(params.after_completion)
  yield* checkCarried(before, params)
  const metadata = yield* Params.changedMetadata(before.metadata, params.metadata)
  const carried = carriedOf(params)
  return change(context, before, {
    ...(carried === undefined ? before : carrying(context, before, carried)),
    active: params.active ?? before.active,
    after_completion:
      params.after_completion === undefined ? before.after_completion : afterCompletionOf(params.after_completion),
    allow_promotion_codes: params.allow_promotion_codes ?? before.allow_promotion_codes,
    inactive_message: params.inactive_message === undefined ? before.inactive_message : params.inactive_message,
    metadata,
    restrictions: restrictionsOf(before, params)
  })
})

export const isOpen = ({ active, restrictions }: PaymentLink): boolean =>
  active && (restrictions === null || restrictions.completed_sessions.count < restrictions.completed_sessions.limit)

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
        total: sumOf(items)
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

/** The last sale that the limit allows closes the link (`payment_link.updated`). */
export const countSale = (context: RequestContext, session: Session): void => {
  const link = session.payment_link === null ? undefined : context.objects.get("payment_link", session.payment_link)
  if (link === undefined || link.restrictions === null) return
  const { count, limit } = link.restrictions.completed_sessions
  const counted: PaymentLink = { ...link, restrictions: { completed_sessions: { count: count + 1, limit } } }
  if (count + 1 < limit) context.objects.put("payment_link", link.id, counted)
  else change(context, link, { ...counted, active: false })
}

export const paymentLinkRoutes: ReadonlyArray<Route> = [
  links.create(paymentLinkParams, createPaymentLink),
  links.list(listParams, { fields: ["active"] }),
  links.get,
  links.update(updateParams, update),
  links.parts("line_items", "item", soldItems)
]
