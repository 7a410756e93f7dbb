import { Effect, Schema } from "effect"
import * as Params from "../../api/Params.ts"
import { noParams, type RequestContext, type Route } from "../../api/Route.ts"
import { type ProviderError, refuse } from "../../ProviderError.ts"
import type { Session } from "../../Records.ts"
import { resource } from "../Resource.ts"
import { soldItems } from "./Sales.ts"
import { createSession, sessionParams } from "./SessionCreation.ts"

const filters = Params.optionals({
  created: Params.range,
  customer_details: Schema.Struct({ email: Params.text() }),
  payment_intent: Params.text(),
  payment_link: Params.text(),
  status: Params.oneOf("complete", "expired", "open"),
  subscription: Params.text()
})

const sessions = resource("/v1/checkout/sessions", "checkout.session")

export const expireSession = (context: RequestContext, open: Session): Session =>
  context.save("checkout.session", "checkout.session.expired", { ...open, status: "expired", url: null })

export const isOverdue = (session: Session, now: number): boolean =>
  session.status === "open" && session.expires_at <= now

const expire = (context: RequestContext, _: object, session: Session): Effect.Effect<Session, ProviderError> =>
  session.status === "open"
    ? Effect.sync(() => expireSession(context, session))
    : refuse({
        message: `Only Checkout Sessions with a status in ["open"] can be expired. This Checkout Session has a status of \`${session.status}\`.`
      })

export const checkoutSessionRoutes: ReadonlyArray<Route> = [
  sessions.create(sessionParams, createSession),
  sessions.list(filters, {
    matches: {
      customer_details: ({ customer_details: payer }, asked) =>
        asked === undefined || payer?.email?.toLowerCase() === asked.email.toLowerCase()
    }
  }),
  sessions.get,
  sessions.parts("line_items", "item", soldItems),
  sessions.act("expire")(noParams, expire)
]
