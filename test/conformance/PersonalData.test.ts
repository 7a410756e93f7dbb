import { describe, expect, it } from "@effect/vitest"
import { withoutPayer } from "../../src/payments/PersonalData.ts"
import { withoutSecrets } from "../../src/payments/stripe/StripeCall.ts"
import { canary } from "./ProviderObjects.ts"
import { type Json, providerDefinitions } from "./ProviderSchemas.ts"

/*
 * What the provider's types have that says who paid, compared with what callers without `customers:read` are shown
 * (contract 4.14). A new version of the package may add a way of paying with a field of its own: then this fails, until the
 * field is named in one of the two places.
 */

const types = {
  charge: { file: "Charges", name: "Charge" },
  payment_intent: { file: "PaymentIntents", name: "PaymentIntent" },
  "checkout.session": { file: "Checkout/Sessions", name: "Session" },
  refund: { file: "Refunds", name: "Refund" },
  dispute: { file: "Disputes", name: "Dispute" }
} as const

/** Parts of paths that can say who somebody is, or how to reach them. */
const personal =
  /(?:address|alias|buyer|cashtag|dob|email|holder|owner|payer|phone|tax_id|vpa)|[._](?:iban|name|pay_id|postal_code|zip)(?=[.[]|$)/

/** What such words mean elsewhere: not the payer. */
const others = [
  // Banks, products, taxes and brands have names, and so have programs on cards
  /(?:application_preferred|bank|branch|dedicated_file|display|product)_name$/,
  // Results of checks, kinds of accounts, how a card's holder was asked, and when a message was sent
  /_(?:check|holder_type|verification_method)$/,
  /\.email_sent_at$/,
  // The account that a payer is asked to pay to, and the seller's own address, taxes and texts
  /\.financial_addresses\[\]\./,
  /\.sepa_credit_transfer\.iban$/,
  /\.shipping_from_zip$/,
  /\.account_tax_ids\[\]/,
  /\.custom_fields\[\]\.name$/,
  /\.custom_text\./,
  // Whether and how it is asked for
  /\.(?:billing_address|phone_number|shipping_address|tax_id)_collection(?:\.|$)/,
  /\.requested_address_types\[\]$/
]

/** Fields that can be the address of a page or of a file. */
const page = /(?:^|[._])(?:href|pdf|png|svg|uri|url)$/

/** Pages and pictures that say nothing of who pays, or that the payer is on the way to anyway. */
const pagesOfNobody = [
  // The seller's own pages and pictures, and the checkout page, which the integrator hands out
  /^\.(?:after_expiration\.recovery\.url|cancel_url|success_url|url)$/,
  /[._](?:custom_mandate_url|icon\.url|image_url|logo\.url|product_url|return_url)$/,
  // How to pay: a code, an amount and the account to pay to
  /\.(?:hosted_instructions_url|image_url_(?:png|svg)|image_data_url|mobile_auth_url|native_url)$/,
  /\.(?:alipay_handle_redirect|redirect_to_url|wechat_pay_redirect_to_(?:android|ios)_app)\.\w*url$/,
  // Where a list is read on, the provider's documentation, and its log, which takes the account's own login
  /\.(?:line_items|refunds)\.url$/,
  /\.(?:doc_url|request_log_url)$/
]

const { definitionOf, definitions } = providerDefinitions(types)

const record = (value: unknown): Json => Object(value)

const schemasIn = (value: unknown): ReadonlyArray<Json> => (Array.isArray(value) ? value.map(record) : [])

/** The paths of all texts and numbers of a type. What may be an id in place of the object is always an id here. */
const pathsOf = (name: keyof typeof types): ReadonlyArray<string> => {
  const seen = new Set<unknown>()
  const within = (schema: Json, path: string): ReadonlyArray<string> => {
    const { $ref: reference, anyOf, items, properties, type } = schema
    if (anyOf !== undefined) {
      const alternatives = schemasIn(anyOf)
      const canBeId = alternatives.some((one) => one["type"] === "string")
      return alternatives.flatMap((one) => (canBeId && "$ref" in one ? [] : within(one, path)))
    }
    if (typeof reference === "string") {
      if (seen.has(reference)) return []
      seen.add(reference)
      return within(record(definitions[reference.replace("#/definitions/", "")]), path)
    }
    if (properties !== undefined) {
      return Object.entries(record(properties)).flatMap(([field, of]) => within(record(of), `${path}.${field}`))
    }
    if (type === "array") return within(record(items), `${path}[]`)
    return type === "string" || type === "number" ? [path] : []
  }
  return within({ $ref: `#/definitions/${definitionOf(name)}` }, "")
}

const objectWith = (path: string): Json => {
  const [, ...fields] = path.split(".")
  return record(
    fields.reduceRight<unknown>((part, field) => {
      const depth = field.match(/\[\]/g)?.length ?? 0
      let value = part
      for (let level = 0; level < depth; level++) value = [value]
      return { [field.replaceAll("[]", "")]: value }
    }, canary)
  )
}

const shows = (object: Json): boolean => JSON.stringify(object).includes(canary)

const isLeftOut = (name: string, path: string): boolean => name === "dispute" && path.startsWith(".evidence.")

describe("the provider's types", () => {
  for (const name of ["charge", "payment_intent", "checkout.session", "refund", "dispute"] as const) {
    it(`have no field of a ${name} that says who paid and is shown without customers:read`, () => {
      const paths = pathsOf(name)
      expect(paths.length).toBeGreaterThan(20)
      const shown = paths.filter(
        (path) =>
          personal.test(path) &&
          !others.some((other) => other.test(path)) &&
          !isLeftOut(name, path) &&
          shows(withoutPayer(objectWith(path)))
      )
      expect(shown).toEqual([])
    })

    it(`have no address of a page of a ${name} that is neither hidden nor known to name no payer`, () => {
      expect(
        pathsOf(name)
          .filter((path) => page.test(path) && !isLeftOut(name, path))
          .filter((path) => !pagesOfNobody.some((known) => known.test(path)) && shows(withoutPayer(objectWith(path))))
      ).toEqual([])
    })

    it(`have no client secret of a ${name} that is shown to anybody`, () => {
      const secrets = pathsOf(name).filter((path) => path.endsWith(".client_secret"))
      expect(secrets.filter((path) => shows(withoutSecrets(objectWith(path))))).toEqual([])
      const own = objectWith(".metadata.client_secret")
      expect(withoutSecrets(own)).toEqual(own)
    })
  }

  it("have the account that a payer is asked to pay to, which stays", () => {
    for (const path of [
      ".next_action.display_bank_transfer_instructions.financial_addresses[].iban.account_holder_name",
      ".metadata.email",
      ".source"
    ]) {
      expect(withoutPayer(objectWith(path))).toEqual(objectWith(path))
    }
  })
})
