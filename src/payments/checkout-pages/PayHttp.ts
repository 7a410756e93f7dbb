import { HttpApiBuilder, type HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Duration, Effect, Option } from "effect"
import {
  type ApiError,
  retrySeconds,
  type ServiceUnavailable,
  UnsupportedMediaType,
  ValidationFailed
} from "../../platform/errors/Errors.ts"
import { BaseApi } from "../../platform/kit/BaseApi.ts"
import { type BucketEmpty, RateLimits } from "../../platform/kit/RateLimit.ts"
import type { TrustedProxies } from "../../platform/settings/Forms.ts"
import { readBytes } from "../../server/Body.ts"
import { clientNetwork } from "../../server/Connections.ts"
import { CheckoutPages, type Chosen, type FoundPage } from "./CheckoutPages.ts"
import { PayPagesApi } from "./PayApi.ts"
import { type Entered, fieldOf, messagePage, type PayPageOptions, payPage, versionOf } from "./PayPage.ts"

/** Parses a payer's form, which is untrusted input. */

/** Maximum size of a form; one with 20 items is below 1 KiB. */
const maxFormBytes = 8 * 1024

/** Maximum number of fields, more than a form with 20 items and its hidden fields has. */
const maxFields = 40

type Choice =
  | { readonly kind: "chosen"; readonly chosen: ReadonlyArray<Chosen>; readonly attempt: string }
  /** The items changed after the payer saw them. */
  | { readonly kind: "changed" }
  | { readonly kind: "refused"; readonly entered: Entered; readonly alert: string }

const utf8 = new TextDecoder("utf-8", { fatal: true })

const malformed = () => new ValidationFailed({ message: "The form is not one of this page." })

const readFields = (bytes: Uint8Array): Effect.Effect<ReadonlyMap<string, string>, ValidationFailed> =>
  Effect.suspend(() => {
    const written = Effect.try({ try: () => utf8.decode(bytes), catch: malformed })
    return Effect.flatMap(written, (text) => {
      if (text.split("&", maxFields + 1).length > maxFields) return malformed()
      const pairs = [...new URLSearchParams(text)]
      const fields = new Map(pairs)
      return fields.size === pairs.length ? Effect.succeed(fields) : malformed()
    })
  })

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** The quantity of an item, or an error message. */
const quantityOf = (
  { adjustableQuantity, quantity }: FoundPage["items"][number],
  written: string | undefined
): number | string => {
  if (adjustableQuantity === null) return quantity
  const { maximum, minimum } = adjustableQuantity
  const text = (written ?? "").trim()
  const value = /^\d{1,4}$/.test(text) ? Number(text) : Number.NaN
  return value >= minimum && value <= maximum ? value : `Enter a whole number from ${minimum} to ${maximum}.`
}

/** Returns a payer's choice on a page. Fails if the form has fields that the page's form does not have. */
const choiceOf = (page: FoundPage, fields: ReadonlyMap<string, string>): Effect.Effect<Choice, ValidationFailed> =>
  Effect.suspend((): Effect.Effect<Choice, ValidationFailed> => {
    const attempt = fields.get("attempt") ?? ""
    if (!uuid.test(attempt) || !fields.has("version")) return malformed()
    if (fields.get("version") !== versionOf(page)) return Effect.succeed({ kind: "changed" })
    const adjustable = page.items.flatMap((item, index) => (item.adjustableQuantity === null ? [] : [index]))
    const known = new Set(["attempt", "version", ...adjustable.map(fieldOf)])
    if ([...fields.keys()].some((name) => !known.has(name))) return malformed()
    const quantities = page.items.map((item, index) => quantityOf(item, fields.get(fieldOf(index))))
    const entered = {
      quantities: new Map(adjustable.map((index) => [index, (fields.get(fieldOf(index)) ?? "").slice(0, 10)] as const)),
      problems: new Map(
        quantities.flatMap((quantity, index) => (typeof quantity === "string" ? [[index, quantity] as const] : []))
      )
    }
    if (entered.problems.size > 0) {
      return Effect.succeed({ kind: "refused", entered, alert: "Check the quantities. Nothing was charged." })
    }
    const chosen = page.items.flatMap((item, index): ReadonlyArray<Chosen> => {
      const quantity = quantities[index]
      return typeof quantity === "number" && quantity > 0 ? [{ item, quantity }] : []
    })
    return Effect.succeed(
      chosen.length === 0
        ? { kind: "refused", entered, alert: "Choose at least one item. Nothing was charged." }
        : { kind: "chosen", chosen, attempt }
    )
  })

const views = { limit: 120, per: Duration.minutes(1) }
const submissions = { limit: 20, per: Duration.minutes(1) }

/** Sessions that one workspace's payers may start, so that many networks can't use up its share at the provider. */
const sessionsOfWorkspace = { limit: 600, per: Duration.minutes(1) }

export interface PayPagesOptions {
  readonly trustedProxies: TrustedProxies
  /** `local` allows http URLs. */
  readonly mode: "local" | "production"
}

const isForm = ({ headers }: HttpServerRequest.HttpServerRequest): boolean =>
  /^application\/x-www-form-urlencoded\s*(;|$)/i.test(headers["content-type"]?.trim() ?? "")

/** The pages without a form: shown if there is nothing to buy, or after the payment. */
const messages = (options: PayPageOptions) => {
  const message = messagePage(options)
  return {
    unknown: message({
      status: 404,
      title: "No such page",
      text: "There is no page at this address. Check the link, or ask the shop for a new one."
    }),

    unavailable: message({
      status: 503,
      title: "Not available",
      text: "This page is not available at the moment. Nothing was charged. Wait a moment and try again.",
      headers: { "retry-after": "5" }
    }),

    tooOften: (retryAfter: Duration.Duration) =>
      message({
        status: 429,
        title: "Too many requests",
        text: "There were too many requests from your network. Nothing was charged. Wait a minute, then go back and try again.",
        headers: { "retry-after": String(retrySeconds(retryAfter)) }
      }),

    /** The page shown for one that is deleted, closed, or without a connected account; undefined if the page is open. */
    closed: ({ active, connected, deleted, environment }: FoundPage) => {
      const sandbox = environment === "sandbox"
      if (deleted) {
        const text = "The shop has removed this page. Nothing can be paid here any more."
        return message({ status: 410, sandbox, title: "This page is gone", text })
      }
      if (!active) {
        const text = "The shop has closed this page. Nothing can be paid here at the moment."
        return message({ status: 404, sandbox, title: "This page is closed", text })
      }
      const text = "The shop can't take payments at the moment. Nothing was charged. Try again later, or ask the shop."
      return connected ? undefined : message({ status: 503, sandbox, title: "Not available", text })
    },

    thanks: ({ environment, successText }: FoundPage) =>
      message({
        status: 200,
        sandbox: environment === "sandbox",
        title: "Thank you",
        text: successText ?? "Your checkout is finished. You can close this page."
      })
  }
}

/** The page again, after a form that led to no session. */
const refusals = (options: PayPageOptions) => ({
  /** A form that did not come from the page, or can't be read. */
  unreadable: (page: FoundPage, { status }: ApiError) =>
    payPage(page, options, {
      status,
      alert: "Your choice could not be read. Nothing was charged. Check it and try again.",
      // Otherwise the unread rest of the body would be parsed as the next request
      ...(status === 413 ? { headers: { connection: "close" } } : {})
    }),

  again: (page: FoundPage, choice: Exclude<Choice, { readonly kind: "chosen" }>) =>
    choice.kind === "changed"
      ? payPage(page, options, {
          status: 409,
          alert: "The shop has changed this page meanwhile. Nothing was charged. Check it and try again."
        })
      : payPage(page, options, { status: 422, alert: choice.alert, entered: choice.entered }),

  failed: (page: FoundPage, error: ApiError) => {
    const temporary = error.status >= 500 || error.status === 429
    const again = error._tag === "IdempotencyRequestInProgress" || temporary
    return payPage(page, options, {
      status: error.status === 404 || error.status === 402 ? 409 : error.status,
      alert: again
        ? "The payment page could not be opened: the payment provider did not answer in time. Nothing was charged. Wait a moment and try again."
        : "This can't be bought at the moment. Nothing was charged. Ask the shop.",
      headers: error.retryAfter === null ? {} : { "retry-after": String(retrySeconds(error.retryAfter)) }
    })
  }
})

const readChoice = Effect.fnUntraced(
  function* (page: FoundPage, request: HttpServerRequest.HttpServerRequest) {
    if (!isForm(request)) return yield* new UnsupportedMediaType()
    return yield* choiceOf(page, yield* readFields(yield* readBytes(request, maxFormBytes)))
  },
  // The client is gone, so there is nobody to answer: the edge ends the request
  Effect.catchTag("RequestError", Effect.die)
)

/** Redirects a URL with a trailing slash, where the relative image URL would break; undefined for others. */
const ownAddress = (slug: string, { url }: HttpServerRequest.HttpServerRequest) => {
  const [path = "", ...query] = url.split("?")
  return path.endsWith("/")
    ? HttpServerResponse.empty({
        status: 308,
        headers: { location: [`../${slug}`, ...query].join("?"), "referrer-policy": "no-referrer" }
      })
    : undefined
}

const makePay = Effect.fnUntraced(function* ({ failed }: ReturnType<typeof refusals>) {
  const checkoutPages = yield* CheckoutPages
  const limits = yield* RateLimits
  return (page: FoundPage, { attempt, chosen }: Extract<Choice, { readonly kind: "chosen" }>) =>
    Effect.gen(function* () {
      const { environment, organizationId } = page
      yield* limits.take(`checkout-page-sessions:${organizationId}:${environment}`, sessionsOfWorkspace)
      return yield* checkoutPages.startSession(page, chosen, attempt).pipe(
        Effect.map((url) =>
          HttpServerResponse.empty({
            status: 303,
            headers: { location: url, "cache-control": "no-store", "referrer-policy": "no-referrer" }
          })
        ),
        Effect.catchAll((error) =>
          Effect.as(
            Effect.logWarning(`A checkout page created no session: ${error.code}`, error.cause).pipe(
              Effect.annotateLogs({ organizationId, environment, checkoutPageId: page.id })
            ),
            failed(page, error)
          )
        )
      )
    })
})

/**
 * Serves `PayPagesApi`. The form needs no CSRF token: it reads no cookie and acts for no user, so a form from another
 * site can only do what its sender could do directly, which is to create an unpaid session.
 */
export const payPagesHttp = (options: PayPagesOptions) =>
  HttpApiBuilder.group(BaseApi.add(PayPagesApi), "payPages", (handlers) =>
    Effect.gen(function* () {
      const checkoutPages = yield* CheckoutPages
      const limits = yield* RateLimits
      const pageOptions = { plainHttp: options.mode === "local" }
      const shown = { ...messages(pageOptions), ...refusals(pageOptions) }
      const pay = yield* makePay(shown)

      const limited = (kind: "views" | "submissions") =>
        Effect.flatMap(clientNetwork(options.trustedProxies), (address) =>
          kind === "views"
            ? limits.takeHere(`checkout-page-views:${address}`, views)
            : limits.take(`checkout-page-submissions:${address}`, submissions)
        )

      /** Answers for the page of a slug, within the client network's rate limit. Every failure is a page as well. */
      const onPage = <R>(
        slug: string,
        limit: "views" | "submissions",
        answer: (
          page: FoundPage
        ) => Effect.Effect<HttpServerResponse.HttpServerResponse, BucketEmpty | ServiceUnavailable, R>
      ) =>
        Effect.zipRight(limited(limit), checkoutPages.find(slug)).pipe(
          Effect.flatMap(Option.match({ onNone: () => Effect.succeed(shown.unknown), onSome: answer })),
          Effect.catchTags({
            BucketEmpty: ({ retryAfter }) => Effect.succeed(shown.tooOften(retryAfter)),
            ServiceUnavailable: () => Effect.succeed(shown.unavailable)
          })
        )

      const submit = (page: FoundPage, request: HttpServerRequest.HttpServerRequest) =>
        Effect.matchEffect(readChoice(page, request), {
          onFailure: (error) => Effect.succeed(shown.unreadable(page, error)),
          onSuccess: (choice) =>
            choice.kind === "chosen" ? pay(page, choice) : Effect.succeed(shown.again(page, choice))
        })

      return handlers
        .handleRaw("page", ({ path, request }) =>
          onPage(path.slug, "views", (page) =>
            Effect.succeed(ownAddress(path.slug, request) ?? shown.closed(page) ?? payPage(page, pageOptions))
          )
        )
        .handleRaw("thanks", ({ path }) => onPage(path.slug, "views", (page) => Effect.succeed(shown.thanks(page))))
        .handleRaw("submit", ({ path, request }) =>
          onPage(path.slug, "submissions", (page) => {
            const closed = shown.closed(page)
            return closed === undefined ? submit(page, request) : Effect.succeed(closed)
          })
        )
    })
  )
