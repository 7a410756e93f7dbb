import { Effect, Schema } from "effect"
import { existingOf, listRoute, page, pageParams, retrieveRoute } from "../Lists.ts"
import * as Params from "../Params.ts"
import { refuse } from "../ProviderError.ts"
import type { Session } from "../Records.ts"
import { noParams, type RequestContext, type Route, route } from "../Route.ts"
import { createSession, sessionParams } from "./SessionCreation.ts"

const listParams = Schema.Struct({
  ...pageParams,
  created: Params.optional(Params.range),
  payment_intent: Params.optional(Params.text()),
  payment_link: Params.optional(Params.text()),
  status: Params.optional(Params.oneOf("complete", "expired", "open")),
  subscription: Params.optional(Params.text())
})

const existing = existingOf("checkout.session")

/** Expires an open session. Event: `checkout.session.expired`. */
export const expireSession = (context: RequestContext, open: Session): Session => {
  const session: Session = { ...open, status: "expired", url: null }
  context.objects.put("checkout.session", session.id, session)
  context.emit({ type: "checkout.session.expired", shape: "checkout.session", object: session })
  return session
}

/** Whether an open session's time has run out. */
export const isOverdue = (session: Session, now: number): boolean =>
  session.status === "open" && session.expires_at <= now

const expire = Effect.fnUntraced(function* (context: RequestContext, _: object, id: string) {
  const session = yield* existing(context, id)
  return session.status === "open"
    ? expireSession(context, session)
    : yield* refuse({
        message: `Only Checkout Sessions with a status in ["open"] can be expired. This Checkout Session has a status of \`${session.status}\`.`
      })
})

const listLineItems = Effect.fnUntraced(function* (
  context: RequestContext,
  params: Schema.Struct.Type<typeof pageParams>,
  id: string
) {
  const session = yield* existing(context, id)
  const items = context.objects.get("order", session.id)?.items ?? []
  return yield* page({ items, noun: "item", url: `/v1/checkout/sessions/${id}/line_items` }, params)
})

/** `/v1/checkout/sessions`: create, retrieve, list, list line items, expire. The hosted page completes them. */
export const checkoutSessionRoutes: ReadonlyArray<Route> = [
  route({
    method: "POST",
    path: "/v1/checkout/sessions",
    answers: { object: "checkout.session" },
    params: sessionParams,
    run: createSession
  }),
  listRoute({
    path: "/v1/checkout/sessions",
    kind: "checkout.session",
    params: listParams,
    matches: (session, params) =>
      Params.inRange(session.created, params.created) &&
      (params.payment_intent === undefined || session.payment_intent === params.payment_intent) &&
      (params.payment_link === undefined || session.payment_link === params.payment_link) &&
      (params.status === undefined || session.status === params.status) &&
      (params.subscription === undefined || session.subscription === params.subscription)
  }),
  retrieveRoute("/v1/checkout/sessions/:id", "checkout.session", existing),
  route({
    method: "GET",
    path: "/v1/checkout/sessions/:id/line_items",
    answers: { listOf: "item" },
    params: Schema.Struct(pageParams),
    run: listLineItems
  }),
  route({
    method: "POST",
    path: "/v1/checkout/sessions/:id/expire",
    answers: { object: "checkout.session" },
    params: noParams,
    run: expire
  })
]
