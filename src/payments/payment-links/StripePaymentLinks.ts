import { Effect } from "effect"
import type Stripe from "stripe"
import type { SoldItems } from "../../events/stripe/ProviderEvent.ts"
import { checkoutMarker } from "../checkout-sessions/Metadata.ts"
import {
  allLines,
  checkoutFieldNames,
  everyLine,
  lineWords,
  type SubscriptionTerms,
  soldItemsOf
} from "../checkout-sessions/StripeCheckoutSessions.ts"
import type {
  ChangeObject,
  ConnectedAccount,
  CreateObject,
  ListLines,
  ListObjects,
  ProviderCall,
  RetrieveObject
} from "../ProviderCall.ts"
import { inOurNames, pathIdNames } from "../RefusalReasons.ts"
import type { ProviderObject } from "../Schemas.ts"
import { namedPage, page, type StripeCall, toJson, withoutSecrets } from "../stripe/StripeCall.ts"
import { metadataParams } from "../stripe/StripeObjects.ts"
import type { CreatePaymentLink, ListPaymentLinks, UpdatePaymentLink } from "./Api.ts"

export type NewPaymentLink = CreatePaymentLink & SubscriptionTerms & { readonly mode: "payment" | "subscription" }

export interface CarriedMetadata {
  readonly mode: "payment" | "subscription"
  readonly metadata: Readonly<Record<string, string>>
}

export interface PaymentLinksPort {
  readonly createPaymentLink: CreateObject<
    NewPaymentLink,
    { readonly link: ProviderObject; readonly soldItems: SoldItems; readonly description: string }
  >
  /** Absent fields and unnamed metadata keys are unchanged. */
  readonly updatePaymentLink: ChangeObject<UpdatePaymentLink>
  /** Sets the metadata of a link's future payments or subscriptions. */
  readonly carryLinkMetadata: ChangeObject<CarriedMetadata>
  readonly retrievePaymentLink: RetrieveObject
  readonly listPaymentLinks: ListObjects<ListPaymentLinks>
  readonly listLinkLines: ListLines
}

const expanded = { expand: ["line_items"] }

const linesConcurrency = 5

/** Stripe copies its metadata to its sessions; the service copies it to the payment or subscription. */
export const paymentLinkParams = (params: NewPaymentLink): Stripe.PaymentLinkCreateParams => {
  const { line_items, metadata, mode, trialPeriodDays, ...rest } = params
  const carried = { metadata: { ...metadata } }
  const trial = trialPeriodDays === null ? {} : { trial_period_days: trialPeriodDays }
  return {
    ...rest,
    line_items: line_items.map((item) => ({ ...item })),
    metadata: { ...metadata, [checkoutMarker.key]: checkoutMarker.value },
    ...(mode === "payment" ? { payment_intent_data: carried } : { subscription_data: { ...carried, ...trial } }),
    ...expanded
  }
}

export const paymentLinkChangeParams = ({ metadata, ...rest }: UpdatePaymentLink): Stripe.PaymentLinkUpdateParams => ({
  ...rest,
  ...metadataParams(metadata),
  ...expanded
})

/** The parameters for the metadata of payments or subscriptions: Stripe replaces it as a whole; `""` clears it. */
export const carriedParams = ({ metadata, mode }: CarriedMetadata): Stripe.PaymentLinkUpdateParams => {
  const carried = { metadata: Object.keys(metadata).length === 0 ? ("" as const) : { ...metadata } }
  return {
    ...(mode === "payment" ? { payment_intent_data: carried } : { subscription_data: carried }),
    ...expanded
  }
}

/** A link as the API shows it. */
const shown = (link: Stripe.PaymentLink, lines: ReadonlyArray<Stripe.LineItem>): ProviderObject => {
  const list = { object: "list", url: `/v1/payment_links/${link.id}/line_items`, ...link.line_items }
  return withoutSecrets(toJson({ ...link, line_items: { ...list, data: lines, has_more: false } }))
}

const linkLines = (call: StripeCall) => {
  const listLines = (account: ConnectedAccount, id: string, params: Stripe.PaymentLinkListLineItemsParams) =>
    call("paymentLinks.listLineItems", account, (client, scope) => client.paymentLinks.listLineItems(id, params, scope))

  /** A link with all of its lines, of which Stripe expands only ten. */
  const whole = (account: ConnectedAccount, link: Stripe.PaymentLink) =>
    Effect.map(allLines(link.line_items, listLines(account, link.id, everyLine)), (lines) => ({
      lines,
      link: shown(link, lines)
    }))

  return { listLines, whole }
}

export const stripePaymentLinks = (call: StripeCall): PaymentLinksPort => {
  const { listLines, whole } = linkLines(call)

  /** The link of a call with its id in the path. */
  const namedLink = (account: ConnectedAccount, link: ProviderCall<Stripe.PaymentLink>): ProviderCall<ProviderObject> =>
    link.pipe(
      Effect.flatMap((answered) => whole(account, answered)),
      Effect.map(({ link }) => link),
      Effect.mapError(inOurNames({ ...pathIdNames, ...checkoutFieldNames }))
    )

  const update = (
    account: ConnectedAccount,
    id: string,
    params: Stripe.PaymentLinkUpdateParams,
    idempotencyKey: string
  ) =>
    namedLink(
      account,
      call("paymentLinks.update", account, (client, scope) =>
        client.paymentLinks.update(id, params, { ...scope, idempotencyKey })
      )
    )

  return {
    createPaymentLink: (account, params, { idempotencyKey }) =>
      Effect.gen(function* () {
        const created = yield* call("paymentLinks.create", account, (client, scope) =>
          client.paymentLinks.create(paymentLinkParams(params), { ...scope, idempotencyKey })
        )
        const { lines, link } = yield* whole(account, created)
        return { link, soldItems: soldItemsOf(lines), description: lineWords(lines) }
      }).pipe(Effect.mapError(inOurNames(checkoutFieldNames))),
    updatePaymentLink: (account, id, changes, { idempotencyKey }) =>
      update(account, id, paymentLinkChangeParams(changes), idempotencyKey),
    carryLinkMetadata: (account, id, carried, { idempotencyKey }) =>
      update(account, id, carriedParams(carried), idempotencyKey),
    retrievePaymentLink: (account, id) =>
      namedLink(
        account,
        call("paymentLinks.retrieve", account, (client, scope) => client.paymentLinks.retrieve(id, expanded, scope))
      ),
    listPaymentLinks: (account, params) =>
      Effect.gen(function* () {
        const listed = yield* call("paymentLinks.list", account, (client, scope) =>
          client.paymentLinks.list({ ...params, expand: ["data.line_items"] }, scope)
        )
        const data = yield* Effect.forEach(
          Array.isArray(listed.data) ? listed.data : [],
          (one) => Effect.map(whole(account, one), ({ link }) => link),
          { concurrency: linesConcurrency }
        )
        return yield* page(Effect.succeed({ ...listed, data }))
      }),
    listLinkLines: (account, id, params) => namedPage(listLines(account, id, params))
  }
}
