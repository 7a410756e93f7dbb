import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Authentication } from "../../identity/Authentication.ts"
import { RequiredPermission } from "../../identity/keys/Permissions.ts"
import { WorkspaceEnvironment } from "../../identity/Schemas.ts"
import { rule } from "../../platform/bounds/Rules.ts"
import { controls, ParagraphText, PrintableText, text } from "../../platform/bounds/Text.ts"
import {
  CheckoutPageLimitReached,
  errorSchema,
  errorSchemas,
  PermissionDenied,
  ResourceNotFound
} from "../../platform/errors/Errors.ts"
import { CheckoutPageId, OrganizationId } from "../../platform/kit/Ids.ts"
import {
  BooleanFromQuery,
  CreatedAt,
  described,
  IdempotencyHeaders,
  listOf,
  mostCounted,
  NoQuery,
  OptionalIdempotencyHeaders,
  OrganizationPath,
  optional,
  pageFields,
  strict
} from "../../platform/kit/Request.ts"
import { SessionCollection, ShownCollection } from "../checkout-sessions/Collection.ts"
import { NeededCalls } from "../Endpoints.ts"
import { imageForm } from "../images/ImageUrl.ts"
import { providerErrors } from "../ProviderErrors.ts"
import { type BrokenRule, referenceTo, removable } from "../Schemas.ts"

const maxQuantity = 9_999

const maxItems = 20

const AdjustableQuantity = Schema.Struct({
  minimum: described(
    Schema.Int.pipe(Schema.between(0, maxQuantity)),
    "The fewest that payers can choose; 0 if they may leave the item out"
  ),
  maximum: described(Schema.Int.pipe(Schema.between(1, maxQuantity)), "The most that payers can choose")
}).annotations({ identifier: "AdjustableQuantity", description: "The bounds within which the payer chooses" })

/** Returns the broken rules of an item's quantity and its bounds. */
const brokenQuantity = ({ adjustableQuantity, quantity }: NewItem): ReadonlyArray<BrokenRule> => {
  if (adjustableQuantity === undefined) {
    return quantity >= 1
      ? []
      : [{ path: ["quantity"], message: "must be at least 1, unless the payer chooses it (`adjustableQuantity`)" }]
  }
  const { maximum, minimum } = adjustableQuantity
  if (minimum > maximum) {
    return [{ path: ["adjustableQuantity", "minimum"], message: "must not be greater than the maximum" }]
  }
  return quantity >= minimum && quantity <= maximum
    ? []
    : [{ path: ["quantity"], message: "must be within the bounds of `adjustableQuantity`" }]
}

const itemFields = {
  price: described(referenceTo("price"), "The id of the price that it is sold at"),
  quantity: described(
    Schema.Int.pipe(Schema.between(0, maxQuantity)),
    "The quantity; if the payer chooses, the initial one"
  )
}

interface NewItem {
  readonly price: string
  readonly quantity: number
  readonly adjustableQuantity?: typeof AdjustableQuantity.Type
}

const NewItem = Schema.Struct({ ...itemFields, adjustableQuantity: optional(AdjustableQuantity) })
  .pipe(Schema.filter((item) => [...brokenQuantity(item)]))
  .annotations({ identifier: "Items" })

/** Refuses repeated prices: payers could not tell two lines with one price apart. */
const repeatedPrices = (items: ReadonlyArray<NewItem>): ReadonlyArray<BrokenRule> =>
  items.flatMap(({ price }, index) =>
    items.findIndex((other) => other.price === price) < index
      ? [{ path: [index, "price"], message: "appears more than once; give its item a greater quantity" }]
      : []
  )

const NewItems = Schema.Array(NewItem)
  .pipe(Schema.minItems(1), Schema.maxItems(maxItems))
  .pipe(Schema.filter((items) => [...repeatedPrices(items)]))
  .annotations({
    description: `The items on sale: 1 to ${maxItems} active prices in one currency, each once`,
    // Otherwise the library omits the description of a filter
    jsonSchema: {}
  })

const imageWords = "must be the URL of a product image that was uploaded here, as the upload returned it"

/** The URL of an image uploaded here. This checks only its form; `CheckoutPages` checks that it was uploaded. */
const ImageUrl = text({ min: 1, max: 2048 }).pipe(
  Schema.pattern(imageForm, {
    ...rule(imageWords),
    description: "The URL of a product image that this organization uploaded in this environment",
    arbitrary: () => (fc) =>
      fc.stringMatching(/^[0-9a-f]{64}$/).map((sha256) => `https://payments.example/product-images/${sha256}.png`)
  })
)

const bodyFields = {
  title: PrintableText(120).annotations({ description: "The page's heading" }),
  text: ParagraphText(2000).annotations({ description: "Plain text below the heading; line breaks are kept" }),
  imageUrl: ImageUrl,
  imageAlt: text({
    max: 200,
    pattern: new RegExp(`^[^${controls}]*$`),
    rule: "must be text of up to 200 characters, without control characters such as line breaks"
  }).annotations({ description: "A description of the image for payers who don't see it; empty if it is decorative" }),
  items: NewItems,
  collect: SessionCollection,
  allowPromotionCodes: Schema.Boolean.annotations({
    description: "Whether the payer may enter a promotion code, on the provider's page"
  }),
  successText: ParagraphText(1000).annotations({
    description:
      "Plain text that the payer reads after paying, on a page of this service. Without it, the payer returns to the organization's return URL"
  }),
  active: Schema.Boolean.annotations({ description: "False closes the page" })
}

export const CreateCheckoutPage = strict(
  Schema.Struct({
    title: bodyFields.title,
    text: optional(bodyFields.text),
    imageUrl: optional(bodyFields.imageUrl),
    imageAlt: optional(bodyFields.imageAlt),
    items: bodyFields.items,
    collect: optional(bodyFields.collect),
    allowPromotionCodes: optional(bodyFields.allowPromotionCodes),
    successText: optional(bodyFields.successText),
    active: optional(bodyFields.active)
  }).annotations({ identifier: "CreateCheckoutPage" })
)
export type CreateCheckoutPage = typeof CreateCheckoutPage.Type

export const UpdateCheckoutPage = strict(
  Schema.Struct({
    title: optional(bodyFields.title),
    text: removable(bodyFields.text),
    imageUrl: removable(bodyFields.imageUrl),
    imageAlt: optional(bodyFields.imageAlt),
    items: optional(bodyFields.items),
    collect: optional(bodyFields.collect),
    allowPromotionCodes: optional(bodyFields.allowPromotionCodes),
    successText: removable(bodyFields.successText),
    active: optional(bodyFields.active)
  }).annotations({ identifier: "UpdateCheckoutPage" })
)
export type UpdateCheckoutPage = typeof UpdateCheckoutPage.Type

/** An item with its price and product data, as read from the provider when the items were set. */
export const CheckoutPageItem = Schema.Struct({
  price: described(Schema.String, "The id of the price that it is sold at"),
  quantity: described(Schema.Int, "The quantity; if the payer chooses, the initial one"),
  adjustableQuantity: described(
    Schema.NullOr(
      Schema.Struct({
        minimum: described(Schema.Int, "The fewest that payers can choose"),
        maximum: described(Schema.Int, "The most that payers can choose")
      }).annotations({ identifier: "CheckoutPageItemAdjustableQuantity" })
    ),
    "The bounds within which the payer chooses; null if the quantity is fixed"
  ),
  product: described(Schema.String, "The id of the price's product"),
  name: described(Schema.String, "The product's name when the items were set"),
  currency: described(Schema.String, "Lowercase ISO 4217 code"),
  unitAmount: described(
    Schema.NullOr(Schema.Int),
    "The price of one unit, in the smallest currency unit; null if the quantity or the payer decides it"
  ),
  recurring: described(
    Schema.NullOr(
      Schema.Struct({
        interval: Schema.String.annotations({ description: "`day`, `week`, `month` or `year`" }),
        intervalCount: Schema.Int.annotations({ description: "How many of these make a period" })
      }).annotations({ identifier: "CheckoutPageItemRecurring" })
    ),
    "The billing interval; null if it is charged once"
  )
}).annotations({ identifier: "CheckoutPageItem" })
export type CheckoutPageItem = typeof CheckoutPageItem.Type

export const CheckoutPage = Schema.Struct({
  id: described(CheckoutPageId, "The page's id, which its sessions have as the metadata `svc_checkout_page`"),
  url: described(Schema.String, "The URL that payers open: random, and never reused"),
  slug: described(Schema.String, "The last part of the URL; it never changes"),
  environment: WorkspaceEnvironment,
  active: described(Schema.Boolean, "False if the page is closed"),
  title: described(Schema.String, "The page's heading"),
  text: described(Schema.NullOr(Schema.String), "Plain text below the heading"),
  imageUrl: described(Schema.NullOr(Schema.String), "The URL of the page's image"),
  imageAlt: described(Schema.String, "A description of the image for payers who don't see it"),
  items: described(Schema.Array(CheckoutPageItem), `The items on sale: 1 to ${maxItems} prices, each once`),
  collect: ShownCollection,
  allowPromotionCodes: described(Schema.Boolean, "Whether the payer may enter a promotion code"),
  successText: described(Schema.NullOr(Schema.String), "Plain text that the payer reads after paying"),
  sales: described(
    Schema.Int,
    `How many of its sessions were paid, among those of the last 90 days. Counted up to ${mostCounted}, which means that many or more`
  ),
  createdAt: CreatedAt,
  updatedAt: described(Schema.Date, "When it was changed last: ISO 8601 in UTC, with milliseconds")
}).annotations({ identifier: "CheckoutPage" })
export type CheckoutPage = typeof CheckoutPage.Type

export const CheckoutPageList = listOf("CheckoutPageList", CheckoutPage)

export const ListCheckoutPages = strict(
  Schema.Struct({
    limit: pageFields.limit,
    starting_after: optional(CheckoutPageId, "The last id of the previous page"),
    active: optional(BooleanFromQuery)
  })
)
export type ListCheckoutPages = typeof ListCheckoutPages.Type

const CheckoutPagePath = Schema.Struct({ organizationId: OrganizationId, id: CheckoutPageId })

export class CheckoutPagesApi extends HttpApiGroup.make("checkoutPages")
  .add(
    HttpApiEndpoint.post("create", "/checkout-pages")
      .setPath(OrganizationPath)
      .setUrlParams(NoQuery)
      .setHeaders(IdempotencyHeaders)
      .setPayload(CreateCheckoutPage)
      .addSuccess(CheckoutPage)
      .addError(errorSchemas(PermissionDenied, CheckoutPageLimitReached))
      .annotate(RequiredPermission, "payments:write")
      .annotate(OpenApi.Summary, "Create a checkout page")
      .annotate(
        OpenApi.Description,
        "A page of this service that can be paid any number of times. Prices and products are read from the provider now, and the page shows them as they are now. When a payer continues, a checkout session is created for the items chosen, with the page's id as the metadata `svc_checkout_page`. A recurring price also needs the permission `subscriptions:write`. Up to 100 pages per organization and environment."
      )
  )
  .add(
    HttpApiEndpoint.get("list", "/checkout-pages")
      .setPath(OrganizationPath)
      .setUrlParams(ListCheckoutPages)
      .addSuccess(CheckoutPageList)
      .annotate(RequiredPermission, "payments:read")
      .annotate(OpenApi.Summary, "List checkout pages, newest first")
  )
  .add(
    HttpApiEndpoint.get("get", "/checkout-pages/:id")
      .setPath(CheckoutPagePath)
      .setUrlParams(NoQuery)
      .addSuccess(CheckoutPage)
      .annotate(RequiredPermission, "payments:read")
      .annotate(OpenApi.Summary, "Read a checkout page")
  )
  .add(
    HttpApiEndpoint.patch("update", "/checkout-pages/:id")
      .setPath(CheckoutPagePath)
      .setUrlParams(NoQuery)
      .setHeaders(OptionalIdempotencyHeaders)
      .setPayload(UpdateCheckoutPage)
      .addSuccess(CheckoutPage)
      .addError(errorSchema(PermissionDenied))
      .annotate(RequiredPermission, "payments:write")
      .annotate(OpenApi.Summary, "Change a checkout page, open or close it")
      .annotate(
        OpenApi.Description,
        "Absent fields are unchanged, and an empty text removes `text`, `imageUrl` or `successText`. `items` and `collect` are replaced as a whole; to show a product's new name, send its `items` again. Items with a recurring price, and opening a closed page that has one, also need the permission `subscriptions:write`. A payer who continues from a page opened before `items` changed is shown the page again. Existing sessions are not changed."
      )
  )
  .add(
    HttpApiEndpoint.del("delete", "/checkout-pages/:id")
      .setPath(CheckoutPagePath)
      .setUrlParams(NoQuery)
      .setHeaders(OptionalIdempotencyHeaders)
      .annotate(RequiredPermission, "payments:write")
      .annotate(OpenApi.Summary, "Delete a checkout page")
      .annotate(
        OpenApi.Description,
        "Permanently: its URL answers 410 and is never reused. Existing sessions can still be paid."
      )
  )
  .addError(errorSchema(ResourceNotFound))
  .addError(providerErrors)
  .middleware(Authentication)
  .prefix("/v2/organizations/:organizationId/provider")
  .annotate(NeededCalls, ["retrievePrice", "retrieveProduct", "createCheckoutSession"])
  .annotate(OpenApi.Description, "Pages at which payers buy, hosted by this service") {}
