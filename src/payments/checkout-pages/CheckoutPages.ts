import { randomBytes } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Effect, Option, Predicate } from "effect"
import { PaymentPermission } from "../../identity/keys/Permissions.ts"
import type { PrincipalShape } from "../../identity/Principal.ts"
import { refusal } from "../../platform/bounds/Refusals.ts"
import {
  CheckoutPageLimitReached,
  ProviderUnavailable,
  ResourceNotFound,
  unknownCursor,
  ValidationFailed
} from "../../platform/errors/Errors.ts"
import { type AuditAction, makeAudit } from "../../platform/kit/Audit.ts"
import { CheckoutPageId, newId } from "../../platform/kit/Ids.ts"
import { defaultPageSize, pageOf } from "../../platform/kit/Request.ts"
import { serviceWith } from "../../platform/kit/Service.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import { orUnavailable, transaction } from "../../platform/storage/Database.ts"
import { Accounts } from "../Accounts.ts"
import { CheckoutSessions } from "../checkout-sessions/CheckoutSessions.ts"
import type { SessionCollection, ShownCollection } from "../checkout-sessions/Collection.ts"
import { imagesPath, isOwnImage } from "../images/ImageUrl.ts"
import { Provider } from "../Provider.ts"
import { type ConnectedAccount, keysOf, type ProviderCall } from "../ProviderCall.ts"
import { requireSubscriptions } from "../prices/Prices.ts"
import { requestRefused } from "../RefusalReasons.ts"
import type { ProviderObject } from "../Schemas.ts"
import type {
  CheckoutPage,
  CheckoutPageItem,
  CreateCheckoutPage,
  ListCheckoutPages,
  UpdateCheckoutPage
} from "./Api.ts"
import { type FoundRow, makeCheckoutPagesRepo, type PageContent, type PageRow } from "./CheckoutPagesRepo.ts"

/** A page's items, read at the provider when they are set, so that showing a page makes no calls. */

type NewItems = CreateCheckoutPage["items"]

interface Offer {
  readonly price: ProviderObject
  readonly product: ProviderObject
}

const textOf = (object: ProviderObject, field: string): string => {
  const value = object[field]
  return typeof value === "string" ? value : ""
}

const recurringOf = ({ recurring }: ProviderObject): CheckoutPageItem["recurring"] =>
  Predicate.isRecord(recurring)
    ? {
        interval: typeof recurring["interval"] === "string" ? recurring["interval"] : "",
        intervalCount: typeof recurring["interval_count"] === "number" ? recurring["interval_count"] : 1
      }
    : null

/** The unit price; null if tiers, packages or the payer determine it. */
const unitAmountOf = (price: ProviderObject): number | null => {
  const amount = price["unit_amount"]
  const perUnit = price["billing_scheme"] === "per_unit" && !Predicate.isRecord(price["transform_quantity"])
  return perUnit && typeof amount === "number" && Number.isSafeInteger(amount) ? amount : null
}

const itemOf = ({ adjustableQuantity, price, quantity }: NewItems[number], offer: Offer): CheckoutPageItem => ({
  price,
  quantity,
  adjustableQuantity: adjustableQuantity ?? null,
  product: textOf(offer.product, "id"),
  name: textOf(offer.product, "name"),
  currency: textOf(offer.price, "currency"),
  unitAmount: unitAmountOf(offer.price),
  recurring: recurringOf(offer.price)
})

const periodOf = ({ recurring }: CheckoutPageItem): string | null =>
  recurring === null ? null : `${recurring.intervalCount} ${recurring.interval}`

/** The reason why an item can't be sold on a page with the others; undefined if it can. */
const reasonAgainst = (
  item: CheckoutPageItem,
  { price, product }: Offer,
  items: ReadonlyArray<CheckoutPageItem>
): string | undefined => {
  if (price["active"] === false) return "names a price that is inactive; activate it first"
  if (product["active"] === false) return "names a price of a product that is inactive; activate the product first"
  if (item.currency !== items[0]?.currency) return "must be in the currency of the other items"
  const periods = new Set(items.map(periodOf).filter((period) => period !== null))
  if (item.recurring !== null && periods.size > 1) return "must have the billing interval of the other recurring prices"
  const payerDecides = Predicate.isRecord(price["custom_unit_amount"])
  return payerDecides && (items.length > 1 || item.quantity !== 1 || item.adjustableQuantity !== null)
    ? "lets the payer choose the amount: it must be the only item, once"
    : undefined
}

/** Reads the prices and products of items; an unknown price is refused as `items.<n>.price`. */
const makePageItems = Effect.map(Provider, (provider) => {
  const offerOf = (account: ConnectedAccount, price: string, index: number): ProviderCall<Offer> =>
    Effect.gen(function* () {
      const found = yield* provider.retrievePrice(account, price)
      return { price: found, product: yield* provider.retrieveProduct(account, textOf(found, "product")) }
    }).pipe(
      Effect.mapError((failure) =>
        failure._tag === "ProviderObjectNotFound"
          ? requestRefused({ code: failure.code, fields: [`items.${index}.price`], cause: failure.cause })
          : failure
      )
    )

  return {
    offersOf: (account: ConnectedAccount, items: NewItems): ProviderCall<ReadonlyArray<Offer>> =>
      Effect.forEach(items, ({ price }, index) => offerOf(account, price, index), { concurrency: 5 }),

    /** Returns the items as the page shows them; refuses items that can't be sold, or not together. */
    itemsOf: (
      items: NewItems,
      offers: ReadonlyArray<Offer>
    ): Effect.Effect<ReadonlyArray<CheckoutPageItem>, ValidationFailed> => {
      const pairs = items.flatMap((item, index) => {
        const offer = offers[index]
        return offer === undefined ? [] : [{ item: itemOf(item, offer), offer }]
      })
      const made = pairs.map(({ item }) => item)
      const reasons = pairs.flatMap(({ item, offer }, index) => {
        const reason = reasonAgainst(item, offer, made)
        return reason === undefined ? [] : [[`items.${index}.price`, reason] as const]
      })
      return reasons.length === 0 ? Effect.succeed(made) : new ValidationFailed(refusal(new Map(reasons)))
    }
  }
})

const maxPages = 100

export const payPath = "/pay"

/** A page found by its slug: open, closed or deleted. */
export type FoundPage = FoundRow

export interface Chosen {
  readonly item: CheckoutPageItem
  /** At least 1. */
  readonly quantity: number
}

const shownCollection = ({
  billingAddress = false,
  customFields = [],
  phoneNumber = false
}: SessionCollection = {}): ShownCollection => ({ billingAddress, phoneNumber, customFields })

const orNull = (text: string): string | null => (text === "" ? null : text)

const alphabet = "abcdefghijklmnopqrstuvwxyz234567"

/**
 * Creates the last part of a page's URL: 100 random bits in 20 lower-case letters and digits. Chosen names would share
 * one namespace among all organizations, where one could take another's name, and anyone could guess pages that are not
 * published yet.
 */
const newSlug = (): string => Array.from(randomBytes(20), (byte) => alphabet[byte % 32] ?? "").join("")

const slugForm = /^[a-z2-7]{20}$/

/** A payer's permissions: to buy whatever the page's owner, who had these permissions, offers. */
const payerPermissions = new Set(PaymentPermission.literals)

export interface CheckoutPagesOptions {
  /** The public URL of the service, without a trailing slash. */
  readonly publicUrl: string
  /** Whether images may have http URLs: a local start has only those. */
  readonly plainHttp: boolean
}

const makeParts = Effect.fnUntraced(function* (options: CheckoutPagesOptions) {
  const sql = yield* SqlClient.SqlClient
  const accounts = yield* Accounts
  const sessions = yield* CheckoutSessions
  const repo = yield* makeCheckoutPagesRepo
  const items = yield* makePageItems
  const audit = yield* makeAudit
  const isOwn = isOwnImage(options)
  const imagesUrl = `${options.publicUrl}${imagesPath}/`
  const urlOf = (slug: string): string => `${options.publicUrl}${payPath}/${slug}`
  const shown = ({ imageFile, slug, ...row }: PageRow): CheckoutPage => ({
    ...row,
    slug,
    url: urlOf(slug),
    imageUrl: imageFile === null ? null : `${imagesUrl}${imageFile}`
  })
  const record = (principal: PrincipalShape, action: AuditAction, targetId: CheckoutPageId) =>
    audit({ ...principal, action, targetId })
  const notFound = () =>
    new ResourceNotFound({ message: "There is no such checkout page in this organization and environment." })
  return { options, sql, accounts, sessions, repo, items, audit, isOwn, imagesUrl, urlOf, shown, record, notFound }
})

type Parts = Effect.Effect.Success<ReturnType<typeof makeParts>>

const makeContent = ({ accounts, imagesUrl, isOwn, items, repo }: Parts) => {
  const imageFileOf = Effect.fnUntraced(function* (tenant: Tenant, url: string) {
    const file = url.slice(imagesUrl.length)
    return isOwn(url) && (yield* repo.hasImage(tenant, file))
      ? file
      : yield* new ValidationFailed(
          refusal(
            new Map([
              ["imageUrl", "must be the URL of a product image that this organization uploaded in this environment"]
            ])
          )
        )
  }, orUnavailable)

  const requireToSell = (principal: PrincipalShape, sold: ReadonlyArray<CheckoutPageItem>) =>
    sold.some(({ recurring }) => recurring !== null) ? requireSubscriptions(principal) : Effect.void

  const itemsOf = Effect.fnUntraced(function* (principal: PrincipalShape, wanted: CreateCheckoutPage["items"]) {
    const offers = yield* accounts.use(principal, (account) => items.offersOf(account, wanted))
    const made = yield* items.itemsOf(wanted, offers)
    yield* requireToSell(principal, made)
    return made
  })

  return { imageFileOf, requireToSell, itemsOf }
}

const makePrepareCreate = (
  { record, repo, shown, sql }: Parts,
  { imageFileOf, itemsOf }: ReturnType<typeof makeContent>
) =>
  Effect.fn("CheckoutPages.prepareCreate")(function* (principal: PrincipalShape, params: CreateCheckoutPage) {
    const made = yield* itemsOf(principal, params.items)
    const imageFile = params.imageUrl === undefined ? null : yield* imageFileOf(principal, params.imageUrl)
    const content: PageContent = {
      active: params.active ?? true,
      title: params.title,
      text: params.text ?? null,
      imageFile,
      imageAlt: params.imageAlt ?? "",
      items: made,
      collect: shownCollection(params.collect),
      allowPromotionCodes: params.allowPromotionCodes ?? false,
      successText: params.successText ?? null
    }
    const id = CheckoutPageId.make(yield* newId)
    return Effect.gen(function* () {
      yield* repo.lockWorkspace(principal)
      if ((yield* repo.count(principal)) >= maxPages) {
        return yield* new CheckoutPageLimitReached()
      }
      yield* repo.insert(principal, { id, slug: newSlug() }, content)
      yield* record(principal, "checkout_page.created", id)
      return shown(yield* Effect.flatMap(repo.find(principal, id), Effect.orDie))
    }).pipe(transaction(sql), orUnavailable)
  })

const makeReads = ({ notFound, repo, shown }: Parts) => {
  /** Newest first. Refuses a `starting_after` that is not one of the tenant's pages. */
  const list = Effect.fn("CheckoutPages.list")(function* (tenant: Tenant, query: ListCheckoutPages) {
    const { limit = defaultPageSize, starting_after: after } = query
    if (after !== undefined && Option.isNone(yield* repo.find(tenant, after))) {
      return yield* unknownCursor()
    }
    const rows = yield* repo.list(tenant, query, limit + 1)
    const { data, has_more } = pageOf(rows, limit)
    return { data: data.map(shown), has_more }
  }, orUnavailable)

  const get = Effect.fn("CheckoutPages.get")(function* (tenant: Tenant, id: CheckoutPageId) {
    return shown(yield* Effect.flatMap(repo.find(tenant, id), Effect.mapError(notFound)))
  }, orUnavailable)

  /** Finds a page by its slug: open, closed or deleted. None if it never existed or was deleted over 400 days ago. */
  const find = Effect.fn("CheckoutPages.find")(function* (slug: string) {
    return slugForm.test(slug) ? yield* repo.findBySlug(slug) : Option.none()
  }, orUnavailable)

  return { list, get, find }
}

const makePrepareUpdate = (
  { notFound, record, repo, shown, sql }: Parts,
  { imageFileOf, itemsOf, requireToSell }: ReturnType<typeof makeContent>
) =>
  Effect.fn("CheckoutPages.prepareUpdate")(function* (
    principal: PrincipalShape,
    id: CheckoutPageId,
    { collect, imageUrl, items: wanted, successText, text, ...changes }: UpdateCheckoutPage
  ) {
    // Fail early, before the items are read at the provider
    yield* Effect.flatMap(repo.find(principal, id), Effect.mapError(notFound))
    const made = wanted === undefined ? undefined : yield* itemsOf(principal, wanted)
    const image =
      imageUrl === undefined ? {} : { imageFile: imageUrl === "" ? null : yield* imageFileOf(principal, imageUrl) }
    return Effect.gen(function* () {
      const before = yield* Effect.flatMap(repo.lock(principal, id), Effect.mapError(notFound))
      const opens = changes.active === true && !before.active
      yield* opens ? requireToSell(principal, made ?? before.items) : Effect.void
      yield* repo.replace(principal, id, {
        ...before,
        ...changes,
        ...(collect === undefined ? {} : { collect: shownCollection(collect) }),
        ...(text === undefined ? {} : { text: orNull(text) }),
        ...(successText === undefined ? {} : { successText: orNull(successText) }),
        ...image,
        ...(made === undefined ? {} : { items: made })
      })
      yield* record(principal, "checkout_page.updated", id)
      return shown(yield* Effect.flatMap(repo.find(principal, id), Effect.orDie))
    }).pipe(transaction(sql), orUnavailable)
  }, orUnavailable)

const makeRemove = ({ notFound, record, repo, sql }: Parts) =>
  Effect.fn("CheckoutPages.delete")(function* (principal: PrincipalShape, id: CheckoutPageId) {
    yield* transaction(sql)(
      Effect.gen(function* () {
        yield* Effect.filterOrFail(repo.markDeleted(principal, id), (deleted) => deleted, notFound)
        yield* record(principal, "checkout_page.deleted", id)
      })
    )
  }, orUnavailable)

const makeStartSession = ({ sessions, urlOf }: Parts) =>
  Effect.fn("CheckoutPages.startSession")(function* (page: FoundPage, chosen: ReadonlyArray<Chosen>, attempt: string) {
    const lines = chosen.map(({ item, quantity }) => ({ price: item.price, quantity }))
    const { environment, organizationId, slug } = page
    const session = yield* sessions.create(
      { organizationId, environment, permissions: payerPermissions },
      {
        mode: chosen.some(({ item }) => item.recurring !== null) ? "subscription" : "payment",
        line_items: lines,
        ...(page.allowPromotionCodes ? { allow_promotion_codes: true } : {})
      },
      keysOf(page, "checkout_pages.start_session", JSON.stringify([page.id, attempt, lines, page.allowPromotionCodes])),
      {
        id: page.id,
        collect: page.collect,
        returnUrls: {
          successUrl: page.successText === null ? null : `${urlOf(slug)}/thanks`,
          cancelUrl: urlOf(slug)
        }
      }
    )
    const { url } = session
    // Null if the attempt's session was paid or has expired
    return typeof url === "string" && /^https?:/.test(url)
      ? url
      : yield* new ProviderUnavailable({ cause: "A checkout session without a URL" })
  })

const make = Effect.fnUntraced(function* (options: CheckoutPagesOptions) {
  const parts = yield* makeParts(options)
  const content = makeContent(parts)
  /** Returns the effect that stores the page. Recurring prices need `subscriptions:write`. Audited. */
  const prepareCreate = makePrepareCreate(parts, content)
  const reads = makeReads(parts)
  /**
   * Changes a page, in two steps like `prepareCreate`. Absent fields are unchanged; an empty text removes the current
   * one. Setting items with a recurring price, or opening a closed page that has one, needs `subscriptions:write`.
   * Audited.
   */
  const prepareUpdate = makePrepareUpdate(parts, content)
  /** Deletes a page for good; its slug is never used again. Audited. */
  const remove = makeRemove(parts)
  /**
   * Creates a checkout session for the items that a payer chose, with the page's id in its metadata, and returns its
   * URL, which is only for this payer.
   *
   * @param attempt idempotent: the same attempt with the same choice returns the same session
   */
  const startSession = makeStartSession(parts)

  return {
    prepareCreate,
    list: reads.list,
    get: reads.get,
    prepareUpdate,
    delete: remove,
    find: reads.find,
    startSession,
    clean: orUnavailable(parts.repo.removeDeleted)
  }
})

export class CheckoutPages extends serviceWith<CheckoutPages>()("connected-payments/payments/CheckoutPages", make) {}
